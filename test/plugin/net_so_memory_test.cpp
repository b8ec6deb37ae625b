// Registration of memory, as a job's buffers come and go.
#include <sys/mman.h>

#include <random>

#include "test/catch.h"
#include "test/plugin/net_pair.h"

using namespace gyre;
using namespace gyre::test;

TEST_CASE("any range is registered, as often as wanted, and given back in any order") {
  Net net;
  Pair pair(net);
  std::vector<std::byte> memory(3 << 20);
  std::mt19937 random(7);
  struct Range {
    size_t first, bytes;
    void* handle;
  };
  std::vector<Range> ranges;
  for (int i = 0; i < 2000; ++i) {
    const size_t first = random() % memory.size();
    const size_t bytes = 1 + random() % (random() % 2 == 0 ? 100 : memory.size() - first);
    if (first + bytes > memory.size()) continue;
    const Range again = ranges.empty() || random() % 3 != 0 ? Range{first, bytes, nullptr} : ranges[random() % ranges.size()];
    void* handle = must(net->register_memory(pair.sender, memory.data() + again.first, again.bytes, NCCL_PTR_HOST));
    REQUIRE(handle != nullptr);
    ranges.push_back({again.first, again.bytes, handle});
    while (ranges.size() > random() % 60) {
      std::swap(ranges[random() % ranges.size()], ranges.back());
      must(net->deregister(pair.sender, ranges.back().handle));
      ranges.pop_back();
    }
    // What is still registered can be sent from, whatever was given back around it.
    if (ranges.empty()) continue;
    const Range& used = ranges[random() % ranges.size()];
    Memory in(net, pair.receiver, used.bytes);
    const std::span<std::byte> data{memory.data() + used.first, used.bytes};
    fill({1, static_cast<uint64_t>(i)}, data);
    void *received = nullptr, *sent = nullptr;
    until([&] { return (received = net.receive(pair.receiver, in.bytes(), 1, in.handle())) != nullptr; }, "irecv");
    until([&] { return (sent = net.send(pair.sender, data, 1, used.handle)) != nullptr; }, "isend");
    until(
        [&] {
          if (sent != nullptr && net.test(sent)) sent = nullptr;
          if (received != nullptr && net.test(received)) received = nullptr;
          return sent == nullptr && received == nullptr;
        },
        "a message");
    REQUIRE(holds({1, static_cast<uint64_t>(i)}, in.bytes()));
  }
  for (const Range& range : ranges) must(net->deregister(pair.sender, range.handle));
}

TEST_CASE("memory that comes back at the same address is not taken for what was there") {
  constexpr size_t bytes = 2 << 20;
  Net net;
  Pair pair(net);
  Memory in(net, pair.receiver, bytes);
  void* address = nullptr;
  for (uint64_t number = 0; number < 10; ++number) {
    void* pages =
        mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (address != nullptr ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    if (pages == MAP_FAILED) break;  // taken by another
    address = pages;
    const std::span<std::byte> data{static_cast<std::byte*>(pages), bytes};
    fill({1, number}, data);
    void* handle = must(net->register_memory(pair.sender, pages, bytes, NCCL_PTR_HOST));
    void* received = net.receive(pair.receiver, in.bytes(), 1, in.handle());
    void* sent = net.send(pair.sender, data, 1, handle);
    REQUIRE((sent != nullptr && received != nullptr));
    until(
        [&] {
          if (sent != nullptr && net.test(sent)) sent = nullptr;
          if (received != nullptr && net.test(received)) received = nullptr;
          return sent == nullptr && received == nullptr;
        },
        "a message");
    CHECK(holds({1, number}, in.bytes()));
    must(net->deregister(pair.sender, handle));
    munmap(pages, bytes);
  }
}

TEST_CASE("memory of a kind that the device does not take is refused, and host memory is taken after it") {
  const int version = GENERATE(range(5, 13));
  Net net(version);
  Pair pair(net);
  std::byte byte{};
  const ncclNetProperties_v12_t properties = must(net->properties(0));
  CHECK((properties.ptrSupport & NCCL_PTR_HOST) != 0);
  CHECK(!net->register_memory(pair.sender, &byte, 1, 99));
  if ((properties.ptrSupport & NCCL_PTR_CUDA) == 0) CHECK(!net->register_memory(pair.receiver, &byte, 1, NCCL_PTR_CUDA));
  Memory taken(net, pair.sender, 1000);
}

TEST_CASE("a flush after a receive ends, or there is nothing to wait for") {
  Net net;
  Pair pair(net);
  Memory out(net, pair.sender, 100), in(net, pair.receiver, 100);
  for (int bytes : {0, 100}) {
    void* sent = net.send(pair.sender, out.part(0, static_cast<size_t>(bytes)), 1, out.handle());
    void* received = net.receive(pair.receiver, in.bytes(), 1, in.handle());
    REQUIRE((sent != nullptr && received != nullptr));
    bool sent_done = false;
    until([&] { return sent_done = sent_done || net.test(sent), net.test(received); }, "a message");
    until([&] { return sent_done = sent_done || net.test(sent), sent_done; }, "the send");
    void *data = in.bytes().data(), *memory = in.handle(), *request = nullptr;
    REQUIRE(net->iflush(pair.receiver, 1, &data, &bytes, &memory, &request) == ncclSuccess);
    if (request != nullptr) until([&] { return net.test(request); }, "a flush");
  }
}
