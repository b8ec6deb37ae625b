// NCCL polls listen, connect and accept in any order, beside everything else; none may wait for another.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "test/catch.h"
#include "test/plugin/net_pair.h"

using namespace gyre;
using namespace gyre::test;

namespace {

// A connection that is being made.
struct Making {
  perf::NetHandle handle{};
  void *listener = nullptr, *sender = nullptr, *receiver = nullptr;

  Making(Net& net, int device) : listener(must(net->listen(net.context(), device, handle))) {}
  void connect(Net& net, int device) {
    if (sender == nullptr) sender = must(net->connect(net.context(), device, handle));
  }
  void accept(Net& net) {
    if (receiver == nullptr) receiver = must(net->accept(listener));
  }
  bool made() const { return sender != nullptr && receiver != nullptr; }
  void close(Net& net) const {
    must(net->close_listen(listener));
    must(net->close_send(sender));
    must(net->close_recv(receiver));
  }
};

// One message over a connection; what is wrong with it.
std::string passes(Net& net, void* sender, void* receiver, uint64_t number) {
  const Memory out(net, sender, 5000), in(net, receiver, 5000);
  fill({1, number}, out.bytes());
  void *sent = nullptr, *received = nullptr;
  until([&] { return (sent = net.send(sender, out.bytes(), 3, out.handle())) != nullptr; }, "isend");
  until([&] { return (received = net.receive(receiver, in.bytes(), 3, in.handle())) != nullptr; }, "irecv");
  until(
      [&] {
        if (sent != nullptr && net.test(sent)) sent = nullptr;
        if (received != nullptr && net.test(received)) received = nullptr;
        return sent == nullptr && received == nullptr;
      },
      "a message");
  return holds({1, number}, in.bytes()) ? "" : fmt::format("connection {}: another's message", number);
}

}  // namespace

TEST_CASE("a connection is made whoever polls first, and however often") {
  const int version = GENERATE(range(5, 13));
  const int first_connects = GENERATE(0, 1, 3000), first_accepts = GENERATE(0, 1, 3000);
  Net net(version);
  for (int device = 0; device < net.devices(); ++device) {
    Making making(net, device);
    for (int i = 0; i < first_connects; ++i) making.connect(net, device);
    for (int i = 0; i < first_accepts; ++i) making.accept(net);
    until([&] { return making.connect(net, device), making.accept(net), making.made(); }, "a connection");
    CHECK(passes(net, making.sender, making.receiver, 1) == "");
    making.close(net);
  }
}

TEST_CASE("accept alone finishes what connect began, and connect what accept began") {
  Net net;
  Making first(net, 0);
  until([&] { return first.connect(net, 0), first.sender != nullptr || (first.accept(net), first.receiver != nullptr); }, "one end");
  until([&] { return first.connect(net, 0), first.accept(net), first.made(); }, "the other end");
  CHECK(passes(net, first.sender, first.receiver, 1) == "");
  first.close(net);
}

TEST_CASE("a handle is taken elsewhere, and is 128 bytes of any content before") {
  Net net;
  struct {
    perf::NetHandle handle;
    std::array<std::byte, 64> behind;
  } memory;
  std::fill(memory.handle.begin(), memory.handle.end(), std::byte{0x5a});
  wipe(memory.behind);
  void* listener = must(net->listen(net.context(), 0, memory.handle));
  CHECK(is_untouched(memory.behind));
  perf::NetHandle elsewhere = memory.handle;
  std::fill(memory.handle.begin(), memory.handle.end(), std::byte{0});
  void *sender = nullptr, *receiver = nullptr;
  until(
      [&] {
        if (sender == nullptr) sender = must(net->connect(net.context(), 0, elsewhere));
        if (receiver == nullptr) receiver = must(net->accept(listener));
        return sender != nullptr && receiver != nullptr;
      },
      "a connection");
  CHECK(passes(net, sender, receiver, 1) == "");
  must(net->close_listen(listener));
  must(net->close_send(sender));
  must(net->close_recv(receiver));
}

TEST_CASE("connections in the making do not wait for each other, and find the right other end") {
  Net net;
  const int devices = net.devices();
  std::mt19937 random(4);
  std::vector<Making> all;
  for (int i = 0; i < 40; ++i) all.emplace_back(net, i % devices);
  until(
      [&] {
        const size_t i = random() % all.size();
        if (random() % 2 == 0)
          all[i].connect(net, static_cast<int>(i) % devices);
        else
          all[i].accept(net);
        return std::all_of(all.begin(), all.end(), [](const Making& making) { return making.made(); });
      },
      "all connections");
  for (size_t i = 0; i < all.size(); ++i) CHECK(passes(net, all[i].sender, all[i].receiver, i) == "");
  std::shuffle(all.begin(), all.end(), random);
  for (const Making& making : all) making.close(net);
}

TEST_CASE("a listener that nobody comes to, or only half, is closed") {
  Net net;
  Making nobody(net, 0);
  for (int i = 0; i < 100; ++i) nobody.accept(net);
  CHECK(nobody.receiver == nullptr);
  must(net->close_listen(nobody.listener));
  Making half(net, 0);
  for (int i = 0; i < 3; ++i) half.connect(net, 0);
  must(net->close_listen(half.listener));
  if (half.sender != nullptr) must(net->close_send(half.sender));
}

TEST_CASE("connecting where nobody listens any more is an error, as often as it is tried") {
  Net net;
  perf::NetHandle handle;
  must(net->close_listen(must(net->listen(net.context(), 0, handle))));
  const auto* table = static_cast<const ncclNet_v12_t*>(net->table());
  for (int attempt = 0; attempt < 2; ++attempt) {
    void* comm = nullptr;
    ncclResult_t result = ncclSuccess;
    until([&] { return (result = table->connect(net.context(), 0, handle.data(), &comm, nullptr)) != ncclSuccess; }, "an error");
    CHECK((result == ncclRemoteError || result == ncclSystemError));
    CHECK(comm == nullptr);
    CHECK(table->closeSend(comm) == ncclSuccess);
  }
}

TEST_CASE("a handle of nobody is refused") {
  Net net;
  const auto* table = static_cast<const ncclNet_v12_t*>(net->table());
  std::mt19937 random(9);
  for (int kind = 0; kind < 20; ++kind) {
    perf::NetHandle handle;
    for (std::byte& byte : handle) byte = kind == 0 ? std::byte{0} : static_cast<std::byte>(random());
    void* comm = nullptr;
    until([&] { return table->connect(net.context(), 0, handle.data(), &comm, nullptr) != ncclSuccess; }, "an error");
    CHECK(comm == nullptr);
  }
}
