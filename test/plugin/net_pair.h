// A plugin under test, the .so that TEST_NET_PLUGIN names, and connections inside of this process, both ends in the hand of one thread:
// for tests of single sentences of NCCL's contract. What must not fail throws, which Catch2 reports; asserting is the test's.
#pragma once
#include <array>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <optional>
#include <stdexcept>

#include "perf/net_plugin.h"
#include "test/plugin/payload.h"

namespace gyre::test {

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().what);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// Calls until it is true. The limit is for hangs only.
template <class Condition>
void until(Condition condition, const char* what) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) throw std::runtime_error(std::string("waited for a minute: ") + what);
  }
}

/// The plugin, and a communicator in it. TEST_NET_ENDS says by which devices connections go, from one to another, each fused of several
/// where the table can: "rxe_a0:1+rxe_a1:1 rxe_b0:1+rxe_b1:1".
class Net {
 public:
  struct Ends {
    int connects, listens;
  };
  explicit Net(int version = perf::newest_net_table);
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;
  ~Net() { (void)plugin_->finalize(context_); }

  perf::NetPlugin* operator->() const { return plugin_.get(); }
  perf::NetPlugin& plugin() const { return *plugin_; }
  void* context() const { return context_; }
  int devices() const { return must(plugin_->devices()); }
  /// Of a connection by this device.
  Ends ends(int device) const { return ends_.value_or(Ends{device, device}); }

  /// Null: there is no room. One call, where something `stale` lies in the request's place; else several, as NCCL's, since the plugin's own
  /// thread may have the connection for a moment.
  void* send(void* comm, std::span<const std::byte> data, int tag, void* memory, void* stale = nullptr) const {
    void* request = stale;
    for (int tries = stale == nullptr ? patient_tries : 1; tries > 0; --tries) {
      check("isend", plugin_->isend(comm, const_cast<std::byte*>(data.data()), data.size(), tag, memory, &request));
      if (request != nullptr) break;
    }
    return request;
  }
  void* receive(void* comm, std::span<const std::span<std::byte>> data, const int* tags, void* memory, void* stale = nullptr) const;
  void* receive(void* comm, std::span<std::byte> data, int tag, void* memory, void* stale = nullptr) const {
    return receive(comm, {&data, 1}, &tag, memory, stale);
  }
  bool test(void* request, int* sizes = nullptr) const {
    int done = 0;
    check("test", plugin_->test(request, &done, sizes));
    return done != 0;
  }
  /// Of a send or a receive of one; its bytes.
  int finish(void* request) const {
    int sizes[8] = {};
    until([&] { return test(request, sizes); }, "a request to be done");
    return sizes[0];
  }

 private:
  static constexpr int patient_tries = 1000;
  static std::string path() {
    const char* path = std::getenv("TEST_NET_PLUGIN");
    if (path == nullptr) throw std::runtime_error("TEST_NET_PLUGIN must name the plugin's .so");
    return path;
  }
  int device_of(std::string names, int version) const;
  void check(const char* call, ncclResult_t result) const {
    if (result != ncclSuccess) throw std::runtime_error(plugin_->error(call, result).what);
  }

  std::unique_ptr<perf::NetPlugin> plugin_;
  void* context_;
  std::optional<Ends> ends_;
};

/// A connection from this process to itself: by a device, or by those that TEST_NET_ENDS names.
class Pair {
 public:
  explicit Pair(Net& net, int device = 0);
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() { close_sender(), close_receiver(); }
  void close_sender() {
    if (void* comm = std::exchange(sender, nullptr)) (void)net_->close_send(comm);
  }
  void close_receiver() {
    if (void* comm = std::exchange(receiver, nullptr)) (void)net_->close_recv(comm);
  }

  void* sender = nullptr;
  void* receiver = nullptr;

 private:
  Net& net_;
};

/// Registered memory; wiped when made.
class Memory {
 public:
  Memory(Net& net, void* comm, size_t bytes);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  std::span<std::byte> bytes() const { return {data_.get(), size_}; }
  std::span<std::byte> part(size_t first, size_t bytes) const { return this->bytes().subspan(first, bytes); }
  void* handle() const { return handle_; }

 private:
  Net& net_;
  void* comm_;
  size_t size_;
  std::unique_ptr<std::byte[]> data_;
  void* handle_;
};

}  // namespace gyre::test
