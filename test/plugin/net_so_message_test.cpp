// What a connection carries: messages of any size, groups of receives, tags in any order.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "test/catch.h"
#include "test/plugin/net_pair.h"

using namespace gyre;
using namespace gyre::test;

namespace {

constexpr size_t KiB = 1024, MiB = 1024 * KiB;
}  // namespace

TEST_CASE("a message of any size arrives whole, with its size and no byte behind it, posted first or later") {
  const int version = GENERATE(range(5, 13));
  const bool receive_first = GENERATE(false, true);
  Net net(version);
  Pair pair(net);
  const size_t most = version == 12 ? 64 * MiB + 1 : MiB + 1;
  Memory out(net, pair.sender, most), in(net, pair.receiver, most + 100);
  uint64_t number = 0;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{8}, size_t{63}, 4 * KiB - 1, 4 * KiB + 1, 8 * KiB, 64 * KiB - 1, 64 * KiB,
                             64 * KiB + 1, size_t{0}, MiB - 1, MiB, most}) {
    fill({1, ++number}, out.part(0, bytes));
    wipe(in.bytes());
    void *sent = nullptr, *received = nullptr;
    const auto receive = [&] { return (received = net.receive(pair.receiver, in.bytes(), 0, in.handle())) != nullptr; };
    if (receive_first) until(receive, "irecv");
    until([&] { return (sent = net.send(pair.sender, out.part(0, bytes), 0, out.handle())) != nullptr; }, "isend");
    if (!receive_first) until(receive, "irecv");
    int sent_bytes = -1, received_bytes = -1;
    until(
        [&] {
          if (sent != nullptr && net.test(sent, &sent_bytes)) sent = nullptr;
          if (received != nullptr && net.test(received, &received_bytes)) received = nullptr;
          return sent == nullptr && received == nullptr;
        },
        "a message");
    INFO(bytes);
    CHECK(static_cast<size_t>(sent_bytes) == bytes);
    CHECK(static_cast<size_t>(received_bytes) == bytes);
    CHECK(holds({1, number}, in.part(0, bytes)));
    CHECK(is_untouched(in.bytes().subspan(bytes)));
  }
}

TEST_CASE("groups of receives take the oldest message of each tag, in whatever order both come") {
  const int version = GENERATE(range(5, 13));
  const uint32_t seed = GENERATE(1U, 2U, 3U);
  constexpr int tags = 8, rounds = 30;
  constexpr size_t slot = 200 * KiB;
  Net net(version);
  Pair pair(net);
  Memory out(net, pair.sender, tags * rounds * slot), in(net, pair.receiver, tags * rounds * slot);
  std::mt19937 random(seed);
  // A sender's messages in order; the senders mixed.
  std::vector<int> order;
  for (int i = 0; i < tags * rounds; ++i) order.push_back(i % tags);
  std::shuffle(order.begin(), order.end(), random);
  const auto bytes_of = [&](int tag, int round) {
    const uint64_t drawn = mixed(static_cast<uint64_t>(tag), static_cast<uint64_t>(round));
    return drawn % 5 == 0 ? 0 : drawn % (drawn % 2 == 0 ? 300 : slot);
  };
  const auto place = [&](int tag, int round) { return static_cast<size_t>(tag * rounds + round) * slot; };
  struct Group {
    void* request;
    std::vector<int> tags;
    int round;
  };
  std::vector<void*> sends;
  std::vector<Group> groups;
  std::vector<int> next(tags, 0);  // message of each sender
  size_t sent = 0;
  int round = 0;
  std::vector<int> wanted;
  for (int tag = 0; tag < tags; ++tag) wanted.push_back(tag);
  std::string wrong;
  until(
      [&] {
        if (sent < order.size() && random() % 3 != 0) {
          const int tag = order[sent];
          const std::span<std::byte> data =
              out.part(place(tag, next[static_cast<size_t>(tag)]), bytes_of(tag, next[static_cast<size_t>(tag)]));
          fill({static_cast<uint64_t>(tag), static_cast<uint64_t>(next[static_cast<size_t>(tag)])}, data);
          if (void* request = net.send(pair.sender, data, tag + 1000, out.handle())) {
            sends.push_back(request), ++sent, ++next[static_cast<size_t>(tag)];
          }
        }
        if (round < rounds && groups.size() < 8 && random() % 8 == 0) {
          std::shuffle(wanted.begin(), wanted.end(), random);
          std::vector<std::span<std::byte>> data;
          std::vector<int> told;
          for (const int tag : wanted) data.push_back(in.part(place(tag, round), slot)), told.push_back(tag + 1000);
          if (void* request = net.receive(pair.receiver, data, told.data(), in.handle())) groups.push_back({request, wanted, round++});
        }
        std::erase_if(sends, [&](void* request) { return random() % 4 == 0 && net.test(request); });
        std::erase_if(groups, [&](const Group& group) {
          int sizes[tags] = {};
          if (random() % 4 != 0 || !net.test(group.request, sizes)) return false;
          for (size_t i = 0; i < group.tags.size(); ++i) {
            const size_t bytes = bytes_of(group.tags[i], group.round);
            const std::span<std::byte> got = in.part(place(group.tags[i], group.round), slot);
            const Place from{static_cast<uint64_t>(group.tags[i]), static_cast<uint64_t>(group.round)};
            const bool right = static_cast<size_t>(sizes[i]) == bytes && holds(from, got.first(bytes)) && is_untouched(got.subspan(bytes));
            if (!right) wrong += fmt::format("round {}, tag {}: {} bytes, not {}; ", group.round, group.tags[i], sizes[i], bytes);
          }
          return true;
        });
        return sent == order.size() && round == rounds && sends.empty() && groups.empty();
      },
      "all groups");
  CHECK(wrong == "");
}

TEST_CASE("a message that is larger than its receive is an error, and nothing is written behind") {
  const size_t bytes = GENERATE(size_t{100}, 20 * KiB, 2 * MiB);
  Net net;
  Pair pair(net);
  Memory out(net, pair.sender, bytes), in(net, pair.receiver, bytes);
  const size_t room = bytes - 1;
  fill({1, 1}, out.bytes());
  void* sent = net.send(pair.sender, out.bytes(), 1, out.handle());
  void* received = net.receive(pair.receiver, in.part(0, room), 1, in.handle());
  REQUIRE((sent != nullptr && received != nullptr));
  ncclResult_t result = ncclSuccess;
  int done = 0, sizes[8] = {}, sent_done = 0;
  until(
      [&] {
        if (sent_done == 0) (void)net->test(sent, &sent_done, nullptr);
        result = net->test(received, &done, sizes);
        return result != ncclSuccess || done != 0;
      },
      "an error");
  CHECK(result != ncclSuccess);
  CHECK(is_untouched(in.bytes().subspan(room)));
}

// By hand, `test-net-so "[.4 GiB]"`: 8 GiB of memory.
TEST_CASE("a message of more than 4 GiB arrives whole, and INT_MAX is said", "[.4 GiB]") {
  Net net;
  Pair pair(net);
  const size_t bytes = (size_t{4} << 30) + 5;
  Memory out(net, pair.sender, bytes), in(net, pair.receiver, bytes + 8);
  fill({1, 1}, out.bytes());
  void* sent = net.send(pair.sender, out.bytes(), 1, out.handle());
  void* received = net.receive(pair.receiver, in.bytes(), 1, in.handle());
  REQUIRE((sent != nullptr && received != nullptr));
  int sent_bytes = 0, received_bytes = 0;
  until(
      [&] {
        if (sent != nullptr && net.test(sent, &sent_bytes)) sent = nullptr;
        if (received != nullptr && net.test(received, &received_bytes)) received = nullptr;
        return sent == nullptr && received == nullptr;
      },
      "4 GiB");
  CHECK(sent_bytes == INT_MAX);
  CHECK(received_bytes == INT_MAX);
  CHECK(holds({1, 1}, in.part(0, bytes)));
  CHECK(is_untouched(in.bytes().subspan(bytes)));
}
