// A library under measurement: what measure() needs of it and no more. One file per library (peer_<name>.cpp), each a program of its
// own, since two MPIs cannot live in one process. Calls are blocking; what they are, call.h says.
// A peer that fails says so on stderr and ends the process: a measuring program has nobody to return an error to.
#pragma once
#include <string>

#include "perf/peers/call.h"
#include "perf/peers/machine.h"

namespace gyre::peers {

class Peer {
 public:
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string version() const = 0;
  virtual bool supports(Op, Type type) const { return type == Type::float32; }

  /// Zeroed memory for all calls, that lives until the process ends; null and errno: none.
  virtual std::byte* allocate(size_t bytes) { return touched_memory(bytes); }
  /// Before the first run of a call and after the last one; neither is timed.
  virtual void prepare(const Call&) {}
  virtual void finish() {}
  /// Timed.
  virtual void run(const Call&) = 0;
  virtual const std::byte* result(const Call& call) const {
    if (call.op == Op::all_to_all) return call.apart;
    return call.op == Op::reduce_scatter ? call.block_of(rank()) : call.data;
  }
  /// True: touch() goes before every run, which is timed by itself.
  virtual bool touches() const { return false; }
  virtual void touch(const Call&) {}

  virtual void barrier() = 0;
  virtual double hop_ns() { return 0; }      // 0: not between 2 ranks, or not known
  virtual double maximum(double value) = 0;  // over the ranks
};

}  // namespace gyre::peers
