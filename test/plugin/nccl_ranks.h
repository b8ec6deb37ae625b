// Ranks of NCCL's interface as threads of the test.
#pragma once
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "plugin/abi/nccl.h"
#include "test/ranks.h"

namespace gyre::test {

/// A config as NCCL_CONFIG_INITIALIZER of a release makes it.
inline ncclConfig_t nccl_config(unsigned version = 23007, size_t bytes = sizeof(ncclConfig_t)) {
  ncclConfig_t config;
  std::memset(&config, 0, sizeof config);
  std::array<int, sizeof config / sizeof(int)> open{};
  open.fill(NCCL_CONFIG_UNDEF_INT);
  std::memcpy(&config, open.data(), sizeof config);
  config.netName = nullptr;
  config.commName = nullptr;
  config.size = bytes;
  config.magic = NCCL_CONFIG_MAGIC;
  config.version = version;
  return config;
}

/// What a rank has to say; empty: all was right.
using NcclBody = std::function<std::string(ncclComm_t, int rank)>;

inline ncclUniqueId new_id() {
  ncclUniqueId id;
  if (ncclGetUniqueId(&id) != ncclSuccess) throw std::runtime_error(ncclGetLastError(nullptr));
  return id;
}

/// Runs `body` on each rank, whose communicator is destroyed afterwards.
inline std::string run_nccl(int size, const NcclBody& body) {
  const ncclUniqueId id = new_id();
  Words words(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto& word = words[static_cast<size_t>(rank)];
      ncclComm_t comm = nullptr;
      if (ncclCommInitRank(&comm, size, id, rank) != ncclSuccess) {
        word = std::string("init: ") + ncclGetLastError(nullptr);
        return;
      }
      word = body(comm, rank);
      if (const ncclResult_t result = ncclCommDestroy(comm); result != ncclSuccess && word.empty())
        word = "destroy: " + std::to_string(result);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return first_wrong(words);
}

/// Asks until the communicator is no longer in progress.
inline ncclResult_t settled(ncclComm_t comm) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress && std::chrono::steady_clock::now() < end) {
    if (const ncclResult_t asked = ncclCommGetAsyncError(comm, &state); asked != ncclSuccess) return asked;
    std::this_thread::yield();
  }
  return state;
}

/// Asks until something is wrong with the communicator.
inline ncclResult_t first_error(ncclComm_t comm) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  ncclResult_t state = ncclSuccess;
  while (state == ncclSuccess && std::chrono::steady_clock::now() < end) {
    if (const ncclResult_t asked = ncclCommGetAsyncError(comm, &state); asked != ncclSuccess) return asked;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return state;
}

/// Says where a call that must succeed has not.
#define NCCL_OK(call)                                                                                      \
  do {                                                                                                     \
    if (const ncclResult_t nccl_ok_result = (call); nccl_ok_result != ncclSuccess)                         \
      return std::string(#call " = ") + std::to_string(nccl_ok_result) + ": " + ncclGetLastError(nullptr); \
  } while (0)
#define NCCL_GIVES(expected, call)                                                                                               \
  do {                                                                                                                           \
    if (const ncclResult_t nccl_gives_result = (call); nccl_gives_result != (expected))                                          \
      return std::string(#call " = ") + std::to_string(nccl_gives_result) + ", not " #expected ": " + ncclGetLastError(nullptr); \
  } while (0)

}  // namespace gyre::test
