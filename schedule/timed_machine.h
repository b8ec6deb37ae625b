// The simulator's Machine (run.h): one program at one moment. Private to simulator.cpp.
#pragma once
#include "schedule/simulator.h"

namespace gyre::schedule {

class TimedMachine {
 public:
  TimedMachine(Simulator& job, uint32_t program)
      : job_(job),
        program_(job.programs_[program]),
        rank_(job.schedule_.programs[program].rank),
        channel_(job.schedule_.programs[program].channel) {}

  // For advance(). What is taken and put is only noted: the simulator ends the step when its time has come.
  bool arrived(Rank peer) { return !from(peer).arrived.empty(); }
  bool credit(Rank peer) { return to(peer).under_way < job_.trial_.conditions.credits; }
  bool overwritable(const Chunks& chunks) { return !job_.held() || !held(chunks, program_.position); }
  void take(Rank peer) {
    auto& arrived = from(peer).arrived;
    program_.taken.push_back(arrived.front());
    arrived.pop_front();
  }
  void take(const Chunks&) {}
  void put(const Chunks&) {}
  void put(Rank peer) {
    program_.sinks.push_back(outgoing(peer));
    ++to(peer).under_way;
  }
  void finish(const Step&) {}

  // For the announcer.
  bool posted(Rank /*peer*/) const { return true; }
  bool held(const Chunks& chunks, const Position& position) {
    for (uint32_t i = 0; i < chunks.count; ++i) {
      if (job_.readers(rank_, chunks, i, position.cursor.slice) != 0) return true;
    }
    return false;
  }
  bool expect(Rank peer, const Step&, const Position&) {
    TimedConnection& connection = from(peer);
    if (connection.announced - connection.taken == job_.trial_.conditions.credits) return false;
    ++connection.announced;
    if (!connection.unannounced.empty()) {
      const uint32_t message = connection.unannounced.front();
      connection.unannounced.pop_front();
      job_.depart(message);
    }
    return true;
  }

 private:
  uint32_t outgoing(Rank peer) const { return job_.wiring_.link(channel_, rank_, peer); }
  TimedConnection& from(Rank peer) { return job_.connections_[job_.wiring_.link(channel_, peer, rank_)]; }
  TimedConnection& to(Rank peer) { return job_.connections_[outgoing(peer)]; }

  Simulator& job_;
  TimedProgram& program_;
  Rank rank_;
  uint32_t channel_;
};

}  // namespace gyre::schedule
