// Closing: at any time, whatever is under way, without waiting for the peer; what was called done before has been done.
#include <sys/mman.h>

#include <random>

#include "test/catch.h"
#include "test/plugin/caller_leaks.h"
#include "test/plugin/net_pair.h"

using namespace gyre;
using namespace gyre::test;

namespace {

constexpr size_t piece = 300 << 10;

// Registered pages of its own that are given back between deregistering and closing, as NCCL does: a late write to them is a crash.
struct Lent {
  Net& net;
  void* comm;
  size_t size;
  std::byte* data;
  void* handle;

  Lent(Net& n, void* c, size_t bytes)
      : net(n),
        comm(c),
        size(bytes),
        data(static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        handle(must(net->register_memory(comm, data, size, NCCL_PTR_HOST))) {}
  std::span<std::byte> part(size_t i) const { return {data + i * piece, piece}; }
  void give_back() const {
    must(net->deregister(comm, handle));
    munmap(data, size);
  }
};

// Waits for the error that a request must end with; or for its end, where it may have been done before. Empty result: done.
ncclResult_t end_of(Net& net, void* request) {
  ncclResult_t result = ncclSuccess;
  int done = 0;
  until([&] { return (result = net->test(request, &done, nullptr)) != ncclSuccess || done != 0; }, "the end of a request");
  return result;
}

// Traffic over a connection that has nothing to do with what was closed.
bool still_works(Net& net, Pair& pair) {
  Memory out(net, pair.sender, piece), in(net, pair.receiver, piece);
  bool right = true;
  for (uint64_t number = 0; number < 50; ++number) {
    fill({2, number}, out.bytes());
    void* received = net.receive(pair.receiver, in.bytes(), 1, in.handle());
    void* sent = net.send(pair.sender, out.bytes(), 1, out.handle());
    until(
        [&] {
          if (sent != nullptr && net.test(sent)) sent = nullptr;
          if (received != nullptr && net.test(received)) received = nullptr;
          return sent == nullptr && received == nullptr;
        },
        "a message beside");
    right = right && holds({2, number}, in.bytes());
  }
  return right;
}

}  // namespace

TEST_CASE("comms are closed with requests under way, after their memory is given back") {
  const int under_way = GENERATE(1, 8, 200);
  const bool sender_first = GENERATE(false, true), send = GENERATE(false, true), receive = GENERATE(false, true);
  const int tests = GENERATE(0, 1, 50);
  Net net;
  Pair pair(net), other(net);
  const Lent out(net, pair.sender, piece * 200), in(net, pair.receiver, piece * 200);
  std::vector<void*> requests;
  for (size_t i = 0; i < static_cast<size_t>(under_way); ++i) {
    if (send) requests.push_back(net.send(pair.sender, out.part(i), 1, out.handle));
    if (receive) requests.push_back(net.receive(pair.receiver, in.part(i), 1, in.handle));
  }
  if (!requests.empty() && requests.back() != nullptr) {
    for (int i = 0; i < tests && !net.test(requests.back()); ++i) continue;
  }
  out.give_back();
  in.give_back();
  if (sender_first) pair.close_sender();
  pair.close_receiver();
  pair.close_sender();
  CHECK(still_works(net, other));
}

TEST_CASE("who is left with requests when the peer closes gets ncclRemoteError, and then closes too") {
  const bool sender_closes = GENERATE(false, true);
  Net net;
  Pair pair(net), other(net);
  const Lent out(net, pair.sender, piece * 20), in(net, pair.receiver, piece * 20);
  std::vector<void*> requests;
  for (size_t i = 0; i < 20; ++i) {
    if (sender_closes)
      requests.push_back(net.receive(pair.receiver, in.part(i), 1, in.handle));
    else
      requests.push_back(net.send(pair.sender, out.part(i), 1, out.handle));
    REQUIRE(requests.back() != nullptr);
  }
  for (int i = 0; i < 100; ++i) CHECK(!net.test(requests.back()));
  const Lent &closing = sender_closes ? out : in, &left = sender_closes ? in : out;
  closing.give_back();
  if (sender_closes)
    pair.close_sender();
  else
    pair.close_receiver();
  // A send may be done: that says that its buffer is free, not that somebody has read it. But it ends.
  const ncclResult_t end = end_of(net, requests.back());
  CHECK((end == ncclRemoteError || (!sender_closes && end == ncclSuccess)));
  left.give_back();
  pair.close_sender();
  pair.close_receiver();
  CHECK(still_works(net, other));
}

TEST_CASE("what was called sent arrives, although the sender closes at once") {
  const size_t messages = GENERATE(size_t{1}, size_t{8}, size_t{100});
  const size_t bytes = GENERATE(size_t{1}, size_t{5000}, piece);
  Net net;
  Pair pair(net);
  Memory in(net, pair.receiver, piece * messages);
  std::vector<void*> sends, receives;
  const Lent out(net, pair.sender, piece * messages);
  for (size_t i = 0; i < messages; ++i) {
    fill({1, i}, out.part(i).first(bytes));
    sends.push_back(net.send(pair.sender, out.part(i).first(bytes), 1, out.handle));
    receives.push_back(net.receive(pair.receiver, in.part(i * piece, piece), 1, in.handle()));
    REQUIRE((sends.back() != nullptr && receives.back() != nullptr));
  }
  until([&] { return std::erase_if(sends, [&](void* request) { return net.test(request); }), sends.empty(); }, "the sends");
  out.give_back();
  pair.close_sender();
  for (size_t i = 0; i < messages; ++i) {
    CHECK(net.finish(receives[i]) == static_cast<int>(bytes));
    CHECK(holds({1, i}, in.part(i * piece, bytes)));
  }
}

TEST_CASE("what was received is called sent, although the receiver closes at once") {
  const size_t bytes = GENERATE(size_t{0}, size_t{5000}, piece);
  Net net;
  Pair pair(net);
  Memory out(net, pair.sender, piece);
  void* sent = net.send(pair.sender, out.part(0, bytes), 1, out.handle());
  {
    Memory in(net, pair.receiver, piece);
    void* received = net.receive(pair.receiver, in.bytes(), 1, in.handle());
    REQUIRE((sent != nullptr && received != nullptr));
    // The sender's calls move its end too, as its own process would; it is not yet asked whether it is done.
    bool sent_done = false;
    until([&] { return sent_done = sent_done || net.test(sent), net.test(received); }, "the receive");
    if (sent_done) sent = nullptr;
  }
  pair.close_receiver();
  if (sent != nullptr) CHECK(end_of(net, sent) == ncclSuccess);
}

TEST_CASE("null, and a comm of which connecting failed, are closed without an error") {
  const int version = GENERATE(range(5, 13));
  Net net(version);
  must(net->close_send(nullptr));
  must(net->close_recv(nullptr));
  must(net->close_listen(nullptr));
  must(net->finalize(nullptr));
}

TEST_CASE("a comm that is closed twice does no harm") {
  Net net;
  Pair other(net);
  perf::NetHandle handle;
  void* listener = must(net->listen(net.context(), 0, handle));
  must(net->close_listen(listener));
  must(net->close_listen(listener));
  {
    Pair pair(net);
    void *sender = pair.sender, *receiver = pair.receiver;
    pair.close_sender();
    must(net->close_send(sender));
    pair.close_receiver();
    must(net->close_recv(receiver));
  }
  CHECK(still_works(net, other));
}

TEST_CASE("after the last close nothing is left: no thread, no descriptor") {
  const int version = GENERATE(range(5, 13));
  const Owned before = owned_now();
  for (int again = 0; again < 3; ++again) {
    {
      Net net(version), second(version);
      std::vector<std::unique_ptr<Pair>> pairs;
      for (int i = 0; i < 4; ++i) pairs.push_back(std::make_unique<Pair>(i % 2 == 0 ? net : second, i % net.devices()));
      CHECK(still_works(net, *pairs[0]));
      CHECK(still_works(second, *pairs[1]));
      const Lent out(net, pairs[2]->sender, piece), in(net, pairs[0]->receiver, piece);
      (void)net.send(pairs[2]->sender, out.part(0), 1, out.handle);  // stay under way
      (void)net.receive(pairs[0]->receiver, in.part(0), 1, in.handle);
      out.give_back();
      in.give_back();
    }
    CHECK(what_is_left(before) == "");
  }
}

TEST_CASE("finalizing closes what an abort left open") {
  const int version = GENERATE(11, 12);
  const Owned before = owned_now();
  {
    Net net(version);
    perf::NetHandle handles[3];
    for (perf::NetHandle& handle : handles) must(net->listen(net.context(), 0, handle));
    (void)must(net->connect(net.context(), 0, handles[0]));
  }
  CHECK(what_is_left(before) == "");
}

TEST_CASE("one communicator's end leaves another alone") {
  const int version = GENERATE(10, 12);
  Net kept(version);
  Pair pair(kept);
  {
    Net ended(version);
    Pair beside(ended);
    CHECK(still_works(ended, beside));
  }
  CHECK(still_works(kept, pair));
}

TEST_CASE("what was sent before its sender closed is received, also by who had not accepted by then") {
  Net net;
  perf::NetHandle handle;
  void* listener = must(net->listen(net.context(), 0, handle));
  void *sender = nullptr, *receiver = nullptr;
  until(
      [&] {
        // Rarely accept, so that it has not seen its own end connected when the sender's is.
        for (int i = 0; i < 3000 && sender == nullptr; ++i) sender = must(net->connect(net.context(), 0, handle));
        if (sender == nullptr) receiver = must(net->accept(listener));
        return sender != nullptr || receiver != nullptr;
      },
      "one end");
  REQUIRE(receiver == nullptr);
  {
    const Memory out(net, sender, 100);
    fill({1, 1}, out.bytes());
    void* sent = nullptr;
    until([&] { return (sent = net.send(sender, out.bytes(), 3, out.handle())) != nullptr; }, "isend");
    net.finish(sent);
  }
  must(net->close_send(sender));
  until([&] { return (receiver = must(net->accept(listener))) != nullptr; }, "accept");
  {
    const Memory in(net, receiver, 200);
    void* received = nullptr;
    until([&] { return (received = net.receive(receiver, in.bytes(), 3, in.handle())) != nullptr; }, "irecv");
    CHECK(net.finish(received) == 100);
    CHECK(holds({1, 1}, in.part(0, 100)));
  }
  must(net->close_recv(receiver));
  must(net->close_listen(listener));
}
