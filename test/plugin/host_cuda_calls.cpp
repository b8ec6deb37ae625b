#include "test/plugin/host_cuda_calls.h"

#include <deque>

#include "test/plugin/host_cuda.h"

namespace {

// The program has its GPU when it is loaded, as one that is linked with CUDA.
[[maybe_unused]] const bool loaded = (gyre::test::have_host_cuda(true), true);

gyre::simt::HostStream& stream_of(CUstream_st* stream) { return *reinterpret_cast<gyre::simt::HostStream*>(stream); }

/// What the program is given, for as long as the process lives: it knows the handle or the bytes, not their owner.
template <class T>
std::deque<T>& kept() {
  static auto& all = *new std::deque<T>;
  return all;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] CUstream_st* host_cuda_stream() { return kept<gyre::test::HostCudaStream>().emplace_back(); }
[[gnu::visibility("default")]] void* host_cuda_memory(size_t bytes) {
  return kept<gyre::test::HostCudaMemory>().emplace_back(bytes).data();
}
[[gnu::visibility("default")]] int host_cuda_done(CUstream_st* stream, int milliseconds) {
  return stream_of(stream).done_within(std::chrono::milliseconds(milliseconds)) ? 1 : 0;
}
}
