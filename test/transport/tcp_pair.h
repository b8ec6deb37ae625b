// Two TCP workers of this process that are connected, and messages of all sizes between them.
#pragma once
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "transport/tcp.h"

namespace gyre::test {

constexpr auto patience = std::chrono::seconds(60);
// Of a socket, in bytes: a fraction of the messages. With less the kernel waits for its timers between any two segments, which on a
// loopback device are as large as 64 KiB.
constexpr int tiny = 64 << 10;

template <class Done>
bool wait_for(Done done) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

struct Pair {
  explicit Pair(transport::Slots slots, int buffer_bytes = 0)
      : left_worker(*transport::open_tcp_worker(slots, std::chrono::seconds(5), buffer_bytes)),
        right_worker(*transport::open_tcp_worker(slots, std::chrono::seconds(5), buffer_bytes)),
        listener(*right_worker->listen()) {
    left = *left_worker->connect(listener->address(), "hello");
    const bool joined = wait_for([&] {
      if (right == nullptr) right = *listener->accept();
      return *left->ready() && right != nullptr && *right->ready();
    });
    if (!joined) throw std::runtime_error("not connected");
  }
  void progress() {
    left_worker->progress();
    right_worker->progress();
  }
  std::unique_ptr<transport::Worker> left_worker, right_worker;
  std::unique_ptr<transport::Listener> listener;
  std::unique_ptr<transport::Endpoint> left, right;
};

inline std::vector<std::byte> pattern(uint64_t number, size_t bytes) {
  std::vector<std::byte> all(bytes);
  for (size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(number * 131 + i * 7 + (i >> 8));
  return all;
}

inline bool send_copy(transport::Fifo& fifo, uint64_t plan, const std::vector<std::byte>& data) {
  std::byte* slot = fifo.reserve(data.size());
  if (slot == nullptr) return false;
  if (!data.empty()) std::memcpy(slot, data.data(), data.size());
  fifo.commit(plan, data.size());
  return true;
}

/// Sends so many messages of all sizes from slots and from memory in turn, and takes as many; what is wrong, or empty. Both sides run it.
inline std::string exchange(transport::Worker& worker, transport::Fifo& fifo, uint64_t messages, size_t longest) {
  const size_t sizes[] = {0, 1, 8, 4095, 4096, 4097, 8168, 8192, longest - 1, longest};
  const auto bytes_of = [&](uint64_t i) { return std::min(sizes[i * 7 % std::size(sizes)], longest); };
  std::vector<std::vector<std::byte>> out(messages), in(messages);
  uint64_t sent = 0, expected = 0, popped = 0;
  const bool done = wait_for([&] {
    if (sent < messages) {
      if (out[sent].empty()) out[sent] = pattern(sent, bytes_of(sent));
      const bool copied = sent % 3 == 0;
      if (copied ? send_copy(fifo, sent, out[sent]) : fifo.send_from(sent, out[sent].data(), out[sent].size())) ++sent;
    }
    if (expected < messages) {
      if (in[expected].empty()) in[expected].resize(bytes_of(expected));
      std::byte* place = expected % 2 == 0 ? nullptr : in[expected].data();
      if (fifo.expect(expected, place, bytes_of(expected))) ++expected;
    }
    const transport::Arrival a = fifo.front();
    if (a.data != nullptr) {
      const auto wanted = pattern(popped, bytes_of(popped));
      if (a.plan != popped || a.bytes != wanted.size() || !std::equal(wanted.begin(), wanted.end(), a.data)) return true;
      fifo.pop();
      ++popped;
    }
    worker.progress();
    return worker.failure() != nullptr || (popped == messages && fifo.completed() == messages);
  });
  if (worker.failure() != nullptr) return worker.failure()->what;
  if (!done) return "too long: " + std::to_string(sent) + " sent, " + std::to_string(popped) + " taken";
  return popped == messages ? "" : "message " + std::to_string(popped) + " is wrong";
}

inline std::string both_ways(Pair& pair, uint64_t messages, size_t longest) {
  std::string left, right;
  std::thread other([&] { left = exchange(*pair.left_worker, pair.left->fifo(), messages, longest); });
  right = exchange(*pair.right_worker, pair.right->fifo(), messages, longest);
  other.join();
  return left + right;
}

}  // namespace gyre::test
