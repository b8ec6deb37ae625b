// A library under measurement: what measure() needs of it and no more. One file per library (peer_<name>.cpp), each a program of its
// own, since two MPIs cannot live in one process. Calls are all-reduce, float32, sum, in place, blocking.
// A peer that fails says so on stderr and ends the process: a measuring program has nobody to return an error to.
#pragma once
#include <span>
#include <string>

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

  /// Zeroed memory for all calls, that lives until the process ends; null and errno: none.
  virtual float* allocate(size_t bytes) { return touched_floats(bytes); }
  /// Before the first call and after the last one on `data`; neither is timed.
  virtual void prepare(std::span<float> /*data*/) {}
  virtual void finish() {}
  /// Timed.
  virtual void all_reduce(std::span<float> data) = 0;

  virtual void barrier() = 0;
  virtual double maximum(double value) = 0;  // over the ranks
};

}  // namespace gyre::peers
