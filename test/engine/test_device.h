// The GPU that tests of the device engine run on: the host's threads (test/simt/test_device.cpp) or NVIDIA's (test/gpu/test_device.cpp).
// One of them is linked, and the tests don't know which.
#pragma once
#include <chrono>
#include <functional>
#include <memory>

#include "kernels/gpu.h"

namespace gyre::test {

class TestStream;

/// A CUDA graph, which ends with this, when it does not run any more.
class TestGraph {
 public:
  TestGraph() = default;
  TestGraph(const TestGraph&) = delete;
  TestGraph& operator=(const TestGraph&) = delete;
  virtual ~TestGraph() = default;

  virtual void launch(TestStream&) = 0;
};

/// A stream of the user's.
class TestStream {
 public:
  TestStream() = default;
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  virtual ~TestStream() = default;

  virtual void* handle() = 0;
  /// Calls it on the host, in order.
  virtual void add(std::function<void()>) = 0;
  /// A kernel that has nothing to do.
  virtual void launch(kernels::StepKernel) = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  // What it is given from the one to the other is captured in a graph.
  virtual void begin_capture() = 0;
  virtual std::unique_ptr<TestGraph> end_capture() = 0;
  /// All that was given has been done; false: not within that time.
  virtual bool done_within(std::chrono::milliseconds) = 0;
  /// The same in the end. The limit is for tests that fail.
  bool done() { return done_within(std::chrono::seconds(60)); }
};

class TestDevice {
 public:
  TestDevice() = default;
  TestDevice(const TestDevice&) = delete;
  TestDevice& operator=(const TestDevice&) = delete;
  virtual ~TestDevice() = default;

  /// One of those that there are, for this number.
  static std::unique_ptr<TestDevice> open(int number = 0);
  /// As many can share it in one process, each with a stream that waits and one that waits for that.
  static int most_ranks();

  virtual kernels::Gpu& gpu() = 0;
  virtual std::unique_ptr<TestStream> open_stream() = 0;
  /// That of one of CUDA's handles: 1: legacy, 2: per thread.
  virtual std::unique_ptr<TestStream> stream_of(uintptr_t handle) = 0;
};

}  // namespace gyre::test
