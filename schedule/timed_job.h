// The state of a simulation: what is under way, what is queued, and the events to come in the order of time. Private to simulate.cpp.
#pragma once
#include <deque>
#include <functional>
#include <queue>
#include <utility>

#include "schedule/announce.h"
#include "schedule/ports.h"
#include "schedule/wiring.h"

namespace gyre::schedule {

/// One direction between two ranks on a channel.
struct TimedConnection {
  Link link;
  Route route;
  uint32_t under_way = 0;  // messages that hold a credit
  uint64_t announced = 0;  // of posted mode: receives, from the beginning, as are the messages sent and taken
  uint64_t sent = 0;
  uint64_t taken = 0;
  std::deque<uint32_t> unannounced;  // messages that wait for their receives to be announced
  std::deque<uint32_t> departing;    // those that go through the ports, or wait for them
  std::deque<uint32_t> arrived;      // and those that wait for their receiver
  double last_arrival = 0;           // messages do not overtake each other, whatever the jitter
};

/// What is remembered of a message beside its times: its connection, and the sender's memory that it is read from.
struct TimedMessage {
  uint32_t connection = 0;
  Chunks source;
  uint32_t slice = 0;
};

struct TimedProgram {
  Position position;
  bool running = false;
  bool done = false;
  double begin = 0;  // of its rank
  Announcer announcer;
  std::vector<uint32_t> taken;  // messages that the running step consumes
  std::vector<uint32_t> sinks;  // connections that it sends to
};

struct Event {
  enum class Kind : uint8_t { begin, step_end, port_free, arrival, credit, completion };
  double time = 0;
  uint64_t order = 0;  // events of the same time come in the order in which they were made
  Kind kind = Kind::begin;
  uint32_t index = 0;   // of a program (begin), a step (step_end, credit) or a message
  uint32_t detail = 0;  // of a credit, its connection; of a completion in mapped mode, the step that took the message

  bool operator>(const Event& other) const { return time != other.time ? time > other.time : order > other.order; }
};

class Events {
 public:
  void add(double time, Event::Kind kind, uint32_t index, uint32_t detail = 0) { queue_.push({time, made_++, kind, index, detail}); }
  bool empty() const { return queue_.empty(); }
  Event next() {
    const Event event = queue_.top();
    queue_.pop();
    return event;
  }

 private:
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  uint64_t made_ = 0;
};

}  // namespace gyre::schedule
