// NCCL's threads: a Service thread that connects, registers and closes while a Progress thread moves messages, on the same connections.
#include "test/plugin/joined.h"

using namespace gyre;
using namespace gyre::plugin;
using gyre::test::Host;
using gyre::test::Joined;
using gyre::test::Receive;

namespace {

// True: all of them arrived as they were sent.
bool move_messages(Comm* sends, Comm* receives, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string text = "message " + std::to_string(i);
    std::string place(64, ' ');
    void* data = place.data();
    const size_t capacity = place.size();
    const int tag = i % 3;
    void* memory = nullptr;
    Request *sent = nullptr, *received = nullptr;
    int size = 0;
    const bool moved = test::becomes([&] {
      if (!sent) sent = *sends->send(text.data(), text.size(), tag, nullptr);
      if (!received) received = *receives->receive({{&data, 1}, {&capacity, 1}, {&tag, 1}, &memory});
      return sent && received;
    });
    if (!moved || !test::becomes([&] { return *receives->test(*received, &size); }) || place.substr(0, static_cast<size_t>(size)) != text ||
        !test::becomes([&] { return *sends->test(*sent, nullptr); }))
      return false;
  }
  return true;
}

}  // namespace

TEST_CASE("threads: memory comes and goes, and connections too, while messages move") {
  Host from, to;
  Joined joined(from, to);
  std::atomic<bool> over = false;
  bool good = false;
  {
    const std::jthread progress([&] {
      do {
        good = move_messages(joined.sends, joined.receives, 50);
      } while (good && !over);
    });
    std::string place(64, ' ');
    for (int round = 0; round < 400; ++round) {
      auto* sent_from = *joined.sends->register_memory(place.data(), place.size(), MemoryKind::host);
      auto* received_to = *joined.receives->register_memory(place.data(), place.size(), MemoryKind::host);
      (void)joined.sends->deregister(sent_from);
      (void)joined.receives->deregister(received_to);
      if (round % 16 == 0) const Joined another(from, to);
    }
    over = true;
  }
  CHECK(good);
  CHECK(from.provider.network().registered + to.provider.network().registered == 0);
}

TEST_CASE("threads: several communicators of a process work beside each other, on the same devices") {
  Host host(2);
  host.context();
  constexpr size_t threads = 3;
  std::array<bool, threads> good{};
  {
    std::vector<std::jthread> all;
    for (size_t t = 0; t < threads; ++t) {
      all.emplace_back([&, t] {
        auto* context = *host.process.open(t + 2, -1);
        test::HandleBytes handle;
        const int device = static_cast<int>(t % 2);
        auto* listener = *host.process.listen(context, device, handle);
        Comm *sends = nullptr, *receives = nullptr;
        good[t] = test::becomes([&] {
          if (!sends) sends = *host.process.connect(context, device, handle);
          if (!receives) receives = *host.process.accept(listener);
          return sends && receives;
        });
        host.process.close(listener);
        good[t] = good[t] && move_messages(sends, receives, 500);
        host.process.close(sends);
        host.process.close(receives);
        host.process.finalize(context);
      });
    }
  }
  CHECK(good == std::array{true, true, true});
  CHECK(host.provider.network().endpoints == 0);
}
