// The one interpreter. advance() is what a step means; verifying, simulating, running on the host and on the device differ only in the
// Machine they give it. A step is atomic: it waits for all its inputs and output slots, and runs once and whole. A step that can run
// stays able to run until it does (a Kahn network with bounded channels), so one run to the end proves that no interleaving deadlocks.
//
// A Machine has, for the rank and slice that it stands for:
//   bool arrived(Rank peer)         the next message from peer is here
//   bool credit(Rank peer)          a message can be sent to peer
//   bool overwritable(Chunks)       no message under way still reads these chunks
//   void take(Rank peer)            the next source is what arrived from peer
//   void take(Chunks)               the next source is local
//   void put(Chunks), put(Rank)     a sink; after all sources
//   void finish(const Step&)        reduce the sources into the sinks, send, and free what arrived
#pragma once
#include "schedule/schedule.h"

namespace gyre::schedule {

enum class Wait : uint8_t { nothing, arrival, credit, completion };

/// What a step that did not run waits for.
struct Blocked {
  Wait wait = Wait::nothing;
  Rank peer = -1;  ///< of arrival and credit
};

/// Runs the step if it can; else says what it waits for and has changed nothing.
template <class Machine>
Blocked advance(Machine& machine, const Schedule& schedule, const Step& step) {
  const auto from = schedule.peers(step.from);
  const auto to = schedule.peers(step.to);
  for (const Rank peer : from) {
    if (!machine.arrived(peer)) return {Wait::arrival, peer};
  }
  for (const Rank peer : to) {
    if (!machine.credit(peer)) return {Wait::credit, peer};
  }
  if (step.dst.present() && !machine.overwritable(step.dst)) return {Wait::completion, -1};

  for (uint32_t i = 0; i < from.size(); ++i) {
    if (step.src.present() && i == step.place) machine.take(step.src);
    machine.take(from[i]);
  }
  if (step.src.present() && step.place >= from.size()) machine.take(step.src);
  if (step.dst.present()) machine.put(step.dst);
  for (const Rank peer : to) machine.put(peer);
  machine.finish(step);
  return {};
}

/// Where a program stands. Each step is run for all slices that are in flight together before the next one.
struct Cursor {
  uint32_t step = 0;
  uint32_t slice = 0;

  void next(uint32_t slices) {
    if (++slice == slices) {
      slice = 0;
      ++step;
    }
  }
};

/// Where a program stands in all rounds; ordered as it runs.
struct Position {
  uint32_t round = 0;
  Cursor cursor;

  bool before(const Position& other) const {
    if (round != other.round) return round < other.round;
    if (cursor.step != other.cursor.step) return cursor.step < other.cursor.step;
    return cursor.slice < other.cursor.slice;
  }
  void next(uint32_t slices, size_t steps) {
    cursor.next(slices);
    if (cursor.step == steps) {
      cursor = {};
      ++round;
    }
  }
};

}  // namespace gyre::schedule
