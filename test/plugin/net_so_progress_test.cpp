// Who makes progress: any call, for all; and from several threads at a time.
#include <fmt/format.h>

#include <atomic>
#include <random>
#include <thread>

#include "test/catch.h"
#include "test/plugin/net_pair.h"

using namespace gyre;
using namespace gyre::test;

namespace {

// Whether a message has arrived, as a GPU would see it: nobody has asked the plugin. The last byte differs from what was there.
bool is_written(std::span<std::byte> data) {
  return std::atomic_ref(data.back()).load(std::memory_order_acquire) != untouched && data.back() != untouched;
}

// Messages over a pair in lockstep, up to 8 under way; what was wrong.
std::string run_messages(Net& net, Pair& pair, uint64_t stream, uint64_t messages, size_t bytes) try {
  Memory out(net, pair.sender, 8 * bytes), in(net, pair.receiver, 8 * bytes);
  void *sends[8] = {}, *receives[8] = {};
  uint64_t sent = 0, posted = 0, done = 0, taken = 0;
  std::string wrong;
  until(
      [&] {
        if (sent < messages && sent < done + 8) {
          const std::span<std::byte> data = out.part(sent % 8 * bytes, bytes);
          fill({stream, sent}, data);
          if ((sends[sent % 8] = net.send(pair.sender, data, 1, out.handle())) != nullptr) ++sent;
        }
        if (posted < messages && posted < taken + 8) {
          if ((receives[posted % 8] = net.receive(pair.receiver, in.part(posted % 8 * bytes, bytes), 1, in.handle())) != nullptr) ++posted;
        }
        if (done < sent && net.test(sends[done % 8])) ++done;
        if (taken < posted && net.test(receives[taken % 8])) {
          if (!holds({stream, taken}, in.part(taken % 8 * bytes, bytes))) wrong += fmt::format("stream {}, message {}; ", stream, taken);
          ++taken;
        }
        return done == messages && taken == messages;
      },
      "all messages");
  return wrong;
} catch (const std::exception& error) {
  return error.what();
}

}  // namespace

TEST_CASE("a message arrives although only another request of its comm is tested") {
  const size_t bytes = GENERATE(size_t{100}, size_t{30000}, size_t{3000000});
  Net net;
  Pair pair(net);
  Memory out(net, pair.sender, bytes), in(net, pair.receiver, bytes), never(net, pair.receiver, 100);
  void* other = net.receive(pair.receiver, never.bytes(), 2, never.handle());
  void* received = net.receive(pair.receiver, in.bytes(), 1, in.handle());
  fill({1, 2}, out.bytes());
  out.bytes().back() = std::byte{1};
  void* sent = net.send(pair.sender, out.bytes(), 1, out.handle());
  REQUIRE((other != nullptr && received != nullptr && sent != nullptr));
  until([&] { return net.test(other) || is_written(in.bytes()); }, "a message that nobody asks for");
  CHECK(net.finish(received) == static_cast<int>(bytes));
  CHECK(net.finish(sent) == static_cast<int>(bytes));
}

TEST_CASE("a message arrives although only a request of another comm is tested") {
  const size_t bytes = GENERATE(size_t{100}, size_t{30000}, size_t{3000000});
  Net net;
  Pair pair(net), other(net);
  Memory out(net, pair.sender, bytes), in(net, pair.receiver, bytes), never(net, other.receiver, 100);
  void* asked = net.receive(other.receiver, never.bytes(), 2, never.handle());
  void* received = net.receive(pair.receiver, in.bytes(), 1, in.handle());
  fill({1, 2}, out.bytes());
  out.bytes().back() = std::byte{1};
  void* sent = net.send(pair.sender, out.bytes(), 1, out.handle());
  REQUIRE((asked != nullptr && received != nullptr && sent != nullptr));
  until([&] { return net.test(asked) || is_written(in.bytes()); }, "a message that nobody asks for");
  CHECK(net.finish(received) == static_cast<int>(bytes));
  CHECK(net.finish(sent) == static_cast<int>(bytes));
}

TEST_CASE("memory of both comms is registered and given back while traffic runs") {
  const size_t bytes = GENERATE(size_t{500}, size_t{400000});
  Net net;
  Pair pair(net);
  std::atomic<bool> stop{false};
  std::atomic<int> registrations{0};
  std::string service;
  std::thread thread([&] {
    try {
      std::vector<std::byte> memory(1 << 20);
      std::mt19937 random(3);
      while (!stop || registrations < 100) {
        const size_t first = random() % memory.size();
        void* comm = random() % 2 == 0 ? pair.sender : pair.receiver;
        void* handle = must(net->register_memory(comm, memory.data() + first, memory.size() - first, NCCL_PTR_HOST));
        ++registrations;
        must(net->deregister(comm, handle));
      }
    } catch (const std::exception& error) {
      service = error.what();
    }
  });
  const std::string wrong = run_messages(net, pair, 1, 2000, bytes);
  stop = true;
  thread.join();
  CHECK(wrong == "");
  CHECK(service == "");
}

TEST_CASE("connections are made and closed while traffic runs beside them") {
  Net net;
  Pair pair(net);
  std::atomic<bool> stop{false};
  std::string service;
  std::thread thread([&] {
    try {
      for (int made = 0; !stop || made < 5; ++made) {
        Pair beside(net, made % net.devices());
        const std::string wrong = run_messages(net, beside, 100, 3, 1000);
        if (!wrong.empty()) throw std::runtime_error(wrong);
      }
    } catch (const std::exception& error) {
      service = error.what();
    }
  });
  const std::string wrong = run_messages(net, pair, 1, 3000, 5000);
  stop = true;
  thread.join();
  CHECK(wrong == "");
  CHECK(service == "");
}

TEST_CASE("communicators of one process are used by threads of their own") {
  const int version = GENERATE(5, 10, 12);
  constexpr size_t count = 4;
  std::string wrong[count];
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        Net net(version);
        for (int device = 0; device < net.devices(); ++device) {
          Pair pair(net, device);
          wrong[i] += run_messages(net, pair, i, 300, i % 2 == 0 ? 100 : 200000);
        }
      } catch (const std::exception& error) {
        wrong[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& words : wrong) CHECK(words == "");
}
