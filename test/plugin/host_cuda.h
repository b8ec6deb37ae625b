// CUDA as NCCL's interface needs it, of the host's threads (test/simt): streams, memory that only such a GPU reaches, and gyre's kernels
// there.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "plugin/abi/nccl.h"
#include "test/simt/gpu.h"

namespace gyre::test {

/// A stream of the program's.
class HostCudaStream {
 public:
  HostCudaStream() : HostCudaStream(1024) {}
  /// `capacity`: what it can be given and has not done.
  explicit HostCudaStream(size_t capacity) : stream_(capacity, {2, 32, 0}) {}
  operator cudaStream_t() { return reinterpret_cast<cudaStream_t>(&stream_); }
  void add(std::function<void()> next) { stream_.add(std::move(next)); }
  void begin_capture() { stream_.begin_capture(); }
  std::shared_ptr<simt::HostGraph> end_capture() { return stream_.end_capture(); }
  void launch(const std::shared_ptr<simt::HostGraph>& graph) { simt::HostGraph::launch(graph, stream_); }
  bool done() { return done_within(std::chrono::seconds(60)); }
  bool done_within(std::chrono::milliseconds limit) { return stream_.done_within(limit); }

 private:
  simt::HostStream stream_;
};

/// Memory of the GPU's.
class HostCudaMemory {
 public:
  explicit HostCudaMemory(size_t bytes);
  ~HostCudaMemory();
  HostCudaMemory(const HostCudaMemory&) = delete;
  HostCudaMemory& operator=(const HostCudaMemory&) = delete;

  std::byte* data() { return bytes_.data(); }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes_.data());
  }

 private:
  std::vector<std::byte> bytes_;
};

/// Made before the streams that it is given to, which then end before it, also where a test fails.
template <class T>
class HostCudaArray {
 public:
  HostCudaArray(size_t size, T value) : size_(size), memory_(size * sizeof(T)) { std::fill_n(data(), size, value); }
  T* data() { return memory_.as<T>(); }
  bool all(T value) {
    return std::all_of(data(), data() + size_, [=](T v) { return v == value; });
  }

 private:
  size_t size_;
  HostCudaMemory memory_;
};

/// Work of a stream's that is late, so long that who does not wait for it has gone on meanwhile.
struct Late {
  std::atomic<bool> overtaken{false}, done{false};

  void wait() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    while (!overtaken && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    done = true;
  }
};

/// This process has such a GPU from now on, or none.
void have_host_cuda(bool);
/// For the life of a test.
class WithHostCuda {
 public:
  WithHostCuda() { have_host_cuda(true); }
  ~WithHostCuda() { have_host_cuda(false); }
  WithHostCuda(const WithHostCuda&) = delete;
  WithHostCuda& operator=(const WithHostCuda&) = delete;
};
/// CUDA says that there is none of that number.
inline constexpr int no_device = 100;
/// As the next communicators see it the GPU of that number can't be used.
inline constexpr int no_gpu = -1, every_gpu = -2;
void break_host_gpu(int device);
/// It can, but has no memory for one of its ranks.
void fill_host_gpu(int device);
/// Of pinned memory it has no piece longer than that, from now on.
void limit_host_pinned(size_t bytes);
/// How often communicators have asked for one.
int host_gpus_used();
/// How often streams were to be marked, or to wait for a mark.
int host_marks_used();
/// That stream is said to be captured, or no more, and does what it is given all the same: an NCCL that is not real does its work there.
void capture_host_stream(cudaStream_t, bool);
/// CUDA does not say whether that stream is being captured, or does again.
void break_host_stream(cudaStream_t, bool);
/// It is at this PCI address; by default the driver does not say. While there are no communicators.
void place_host_gpu(std::string address);

}  // namespace gyre::test
