// The steps of a schedule in an order in which they can run, and which message each receives. Private to walk.cpp and walk_waits.cpp.
#pragma once
#include <span>
#include <vector>

#include "topo/profile.h"

namespace gyre::topo {

struct Message {
  uint32_t from = 0;  ///< numbers of steps, in the order of the visits
  uint32_t to = 0;
  int64_t chunks = 0;
  size_t link = inside;
  int64_t before = 0;  ///< chunks that its step sends before it over such links
};

struct Visit {
  uint32_t program = 0;
  const schedule::Step* step = nullptr;
  int64_t before = -1;                         ///< the program's step before; -1: none
  uint32_t first_arrival = 0, first_send = 0;  ///< in WalkOrder::arrivals, messages
  Tally work;                                  ///< of the processor
};

struct WalkOrder {
  std::vector<Visit> visits;
  std::vector<Message> messages;                         ///< those that a step sends are neighbours
  std::vector<uint32_t> arrivals;                        ///< numbers of messages, step by step
  std::array<int64_t, link_kinds> busiest_connection{};  ///< its messages

  std::span<const uint32_t> received(const Visit& visit) const { return {arrivals.data() + visit.first_arrival, visit.step->from.count}; }
  std::span<const Message> sent(const Visit& visit) const { return {messages.data() + visit.first_send, visit.step->to.count}; }
};
WalkOrder walk_order(const schedule::Schedule&, const Placement&);
/// Profile::waits.
std::array<int64_t, link_kinds> waits(const WalkOrder&, size_t programs);

}  // namespace gyre::topo
