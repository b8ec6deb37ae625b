// What gyre adds to the host's cost of calls that it leaves to NCCL: an NCCL and a CUDA driver that do nothing are called straight and by
// way of libgyre-nccl.so, in turn, and what is between them is gyre's. A JSON line for each kind of call:
//
//   beside-cost GYRE NCCL CUDA [beside]     their files; beside: gyre has a communicator beside NCCL's, and takes none of the calls
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "plugin/abi/nccl.h"

namespace {

constexpr int rounds = 51, calls_in_round = 2000, calls_in_group = 8, ranks = 2;
constexpr size_t elements = 2;

template <class Function>
Function* function(void* library, const char* name) {
  void* const found = ::dlsym(library, name);
  if (found == nullptr) fmt::print(stderr, "{}\n", ::dlerror()), std::exit(2);
  return reinterpret_cast<Function*>(found);
}

void* opened(const char* file, int how) {
  void* const library = ::dlopen(file, RTLD_NOW | how);
  if (library == nullptr) fmt::print(stderr, "{}\n", ::dlerror()), std::exit(2);
  return library;
}

/// As a program has it.
struct Nccl {
  explicit Nccl(void* library)
      : init_all(function<decltype(ncclCommInitAll)>(library, "ncclCommInitAll")),
        all_reduce(function<decltype(ncclAllReduce)>(library, "ncclAllReduce")),
        send(function<decltype(ncclSend)>(library, "ncclSend")),
        receive(function<decltype(ncclRecv)>(library, "ncclRecv")),
        start(function<decltype(ncclGroupStart)>(library, "ncclGroupStart")),
        end(function<decltype(ncclGroupEnd)>(library, "ncclGroupEnd")) {}

  decltype(ncclCommInitAll)* init_all;
  decltype(ncclAllReduce)* all_reduce;
  decltype(ncclSend)* send;
  decltype(ncclRecv)* receive;
  decltype(ncclGroupStart)* start;
  decltype(ncclGroupEnd)* end;
};

struct Job {
  ncclComm_t comm;
  cudaStream_t stream;
  float* memory;
};
bool one_all_reduce(const Nccl& nccl, const Job& job) {
  return nccl.all_reduce(job.memory, job.memory, elements, ncclFloat32, ncclSum, job.comm, job.stream) == ncclSuccess;
}
bool group_of_all_reduces(const Nccl& nccl, const Job& job) {
  bool done = nccl.start() == ncclSuccess;
  for (int i = 0; i < calls_in_group; ++i) done = one_all_reduce(nccl, job) && done;
  return nccl.end() == ncclSuccess && done;
}
bool send_and_receive(const Nccl& nccl, const Job& job) {
  bool done = nccl.start() == ncclSuccess;
  done = nccl.send(job.memory, elements, ncclFloat32, 1, job.comm, job.stream) == ncclSuccess && done;
  done = nccl.receive(job.memory, elements, ncclFloat32, 1, job.comm, job.stream) == ncclSuccess && done;
  return nccl.end() == ncclSuccess && done;
}

using Call = bool(const Nccl&, const Job&);
struct Kind {
  const char* name;
  Call* call;
};
constexpr Kind kinds[] = {{"ncclAllReduce", one_all_reduce},
                          {"a group of 8 ncclAllReduce", group_of_all_reduces},
                          {"a group of ncclSend and ncclRecv", send_and_receive}};

double ns_of_one(Call* call, const Nccl& nccl, const Job& job) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls_in_round; ++i) {
    if (!call(nccl, job)) fmt::print(stderr, "a call has failed\n"), std::exit(1);
  }
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / calls_in_round;
}

double median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

void measure(const Kind& kind, const Nccl& straight, const Nccl& by_gyre, const Job& job, long (*driver_calls)(), std::string_view mode) {
  std::vector<double> without, with, added;
  kind.call(by_gyre, job);
  const long before = driver_calls();
  kind.call(by_gyre, job);
  const long asked = driver_calls() - before;
  for (int round = 0; round < rounds; ++round) {
    without.push_back(ns_of_one(kind.call, straight, job));
    with.push_back(ns_of_one(kind.call, by_gyre, job));
    added.push_back(with.back() - without.back());
  }
  fmt::print(
      "{{\"mode\": \"{}\", \"call\": \"{}\", \"straight_ns\": {:.1f}, \"by_gyre_ns\": {:.1f}, \"added_ns\": {:.1f}, \"driver_calls\": "
      "{}}}\n",
      mode, kind.name, median(without), median(with), median(added), asked);
}

}  // namespace

int main(int count, char** given) {
  const bool is_beside = count == 5 && std::strcmp(given[4], "beside") == 0;
  if (count != 4 && !is_beside) return fmt::print(stderr, "beside-cost GYRE NCCL CUDA [beside]\n"), 2;
  ::setenv("GYRE_NCCL", given[2], 1);
  if (is_beside) ::setenv("GYRE_COLLECTIVES", "all_reduce", 1), ::setenv("GYRE_MAX_BYTES", "1", 1);
  void* const cuda = opened(given[3], RTLD_GLOBAL);
  const Nccl straight(opened(given[2], RTLD_LOCAL)), by_gyre(opened(given[1], RTLD_LOCAL));
  ncclComm_t comms[ranks];
  if (by_gyre.init_all(comms, ranks, nullptr) != ncclSuccess) return fmt::print(stderr, "no communicators\n"), 1;
  float memory[elements] = {};
  int stream = 0;
  const Job job{comms[0], reinterpret_cast<cudaStream_t>(&stream), memory};
  for (const Kind& kind : kinds)
    measure(kind, straight, by_gyre, job, function<long()>(cuda, "idle_cuda_calls"), is_beside ? "beside" : "default");
  return 0;
}
