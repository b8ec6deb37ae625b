// Ranks of a program for NCCL as threads of the test, gyre beside a fake NCCL (fake_nccl.c) in the same process, on a GPU of the host's
// threads, whose streams both engines' work goes to.
#pragma once
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <string>
#include <vector>

#include "plugin/nccl/wrap_real.h"
#include "test/folder.h"
#include "test/kept_log.h"
#include "test/plugin/fake_nccl_hooks.h"
#include "test/plugin/host_cuda.h"
#include "test/plugin/nccl_ranks.h"

namespace gyre::test {

/// What the calling thread's calls have come to NCCL as, the first word of each: of operations and groups.
inline std::vector<std::string>& to_nccl() {
  thread_local std::vector<std::string> calls;
  return calls;
}
/// Since it was asked last, with a space after each.
inline std::string newly_to_nccl() {
  std::string all;
  for (const std::string& call : std::exchange(to_nccl(), {})) all += call + " ";
  return all;
}

inline void note_nccl(const char* line) {
  const std::string text = line;
  for (const char* one : {"ncclAllReduce", "ncclSend", "ncclRecv", "ncclGroup"}) {
    if (text.starts_with(one)) to_nccl().push_back(text.substr(4, text.find(' ') - 4));
  }
}

/// NCCL's work is done by the first stream, between what all of them have before and after.
inline void give_streams(CUstream_st* const* streams, int count, void (*work)(void*), void* argument) {
  struct Meeting {
    std::atomic<int> there{0};
    std::atomic<bool> done{false};
  };
  const auto meeting = std::make_shared<Meeting>();
  for (int i = 1; i < count; ++i) {
    reinterpret_cast<simt::HostStream*>(streams[i])->add([meeting] {
      ++meeting->there;
      while (!meeting->done) std::this_thread::yield();
    });
  }
  reinterpret_cast<simt::HostStream*>(streams[0])->add([=] {
    while (meeting->there < count - 1) std::this_thread::yield();
    work(argument);
    meeting->done = true;
  });
}

/// What a rank does while NCCL makes a communicator for it that is split off, and what NCCL says then.
inline std::function<ncclResult_t(int color)>& splitting() {
  static std::function<ncclResult_t(int color)> work = [](int) { return ncclSuccess; };
  return work;
}

/// For the life of a test; all that NCCL's ranks share is in a folder.
class BesideFake {
 public:
  explicit BesideFake(std::vector<std::string> settings = {"GYRE_COLLECTIVES=all_reduce,broadcast", "GYRE_MIN_BYTES=1024"}) {
    static const Folder folder;
    ::setenv("TEST_FAKE_FOLDER", folder.path().c_str(), 1);
    library();
    int version = 0;
    ncclGetVersion(&version);  // the first call chooses who answers
    hooks() = {note_nccl, give_streams, [](int color) -> int { return splitting()(color); }, 0, nullptr};
    set_up(std::move(settings));
  }

  /// What ranks that are made from now on go by.
  static void set_up(std::vector<std::string> settings) {
    settings.emplace_back("GYRE_LOG=info");
    plugin::nccl::wrap::set_up(plugin::nccl::wrap::real(), configured(settings));
  }
  /// What the fake NCCL goes by.
  static FakeNcclHooks& hooks() { return *reinterpret_cast<FakeNcclHooksOf*>(::dlsym(library(), "fake_nccl_hooks"))(); }
  /// The NCCL that the program would have without gyre.
  static void* library() {
    const char* name = std::getenv("TEST_FAKE_NCCL");
    static void* const fake = name == nullptr ? nullptr : ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (fake == nullptr) throw std::runtime_error("TEST_FAKE_NCCL names no library");
    return fake;
  }

 private:
  const WithHostCuda gpu_;
};

using GpuFloats = HostCudaArray<float>;

constexpr size_t many = 3000;  // elements: of more bytes than the least that gyre takes

inline ncclResult_t reduce(GpuFloats& data, ncclComm_t comm, cudaStream_t stream, size_t count = many) {
  return ncclAllReduce(data.data(), data.data(), count, ncclFloat32, ncclSum, comm, stream);
}

}  // namespace gyre::test
