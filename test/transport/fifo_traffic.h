// Random traffic through a buffered Fifo, checked at the other end: what any transport of this kind must carry. Nothing here asserts, so
// that it can run in any thread or process.
#pragma once
#include <sched.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace gyre::test {

/// Message `number` of the stream `seed`; its length is random, with short ones and the longest well represented.
inline std::vector<std::byte> message(uint64_t seed, uint64_t number, size_t longest) {
  std::mt19937_64 random(seed * 1000003 + number);
  const size_t kinds[] = {0, 1, 39, 40, 41, longest, random() % 100, random() % (longest + 1)};
  std::vector<std::byte> bytes(kinds[random() % 8]);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

inline bool send(transport::Fifo& fifo, uint64_t plan, const std::vector<std::byte>& bytes) {
  std::byte* slot = fifo.reserve(bytes.size());
  if (slot == nullptr) return false;
  if (!bytes.empty()) std::memcpy(slot, bytes.data(), bytes.size());
  fifo.commit(plan, bytes.size());
  return true;
}

/// True when `arrival` is exactly this message.
inline bool is(const transport::Arrival& arrival, uint64_t plan, const std::vector<std::byte>& bytes) {
  return arrival.data != nullptr && arrival.plan == plan && arrival.bytes == bytes.size() &&
         (bytes.empty() || std::memcmp(arrival.data, bytes.data(), bytes.size()) == 0);
}

/// Sends the stream `out` and receives the stream `in`, so many messages of each; what went wrong, or empty.
inline std::string exchange(transport::Fifo& fifo, uint64_t out, uint64_t in, uint64_t messages, size_t longest) {
  uint64_t sent = 0;
  uint64_t received = 0;
  while (sent < messages || received < messages) {
    bool moved = false;
    if (sent < messages && send(fifo, sent ^ out, message(out, sent, longest))) ++sent, moved = true;
    if (const transport::Arrival arrival = fifo.front(); arrival.data != nullptr && received < messages) {
      if (!is(arrival, received ^ in, message(in, received, longest))) return "message " + std::to_string(received) + " is wrong";
      fifo.pop();
      ++received, moved = true;
    }
    if (!moved) ::sched_yield();
  }
  return {};
}

}  // namespace gyre::test
