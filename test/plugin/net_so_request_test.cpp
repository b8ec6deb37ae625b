// Requests: as many under way as NCCL may have, null where there are more, and *request as NCCL leaves it.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <random>

#include "test/catch.h"
#include "test/plugin/net_pair.h"

using namespace gyre;
using namespace gyre::test;

namespace {

constexpr size_t most_requests = 256;

// Tests what is left of these requests, those of `order` first, until none is.
void finish_all(Net& net, std::vector<void*> requests, std::mt19937& random) {
  std::shuffle(requests.begin(), requests.end(), random);
  until(
      [&] {
        std::erase_if(requests, [&](void* request) { return net.test(request); });
        return requests.empty();
      },
      "all requests");
}

}  // namespace

TEST_CASE("256 sends and 256 receives are under way; one more gets no request, and is taken later") {
  const int version = GENERATE(5, 9, 12);
  const size_t bytes = GENERATE(size_t{16}, size_t{100} << 10);
  Net net(version);
  Pair pair(net);
  Memory out(net, pair.sender, (most_requests + 1) * bytes), in(net, pair.receiver, (most_requests + 1) * bytes);
  const auto out_of = [&](size_t i) { return out.part(i * bytes, bytes); };
  const auto in_of = [&](size_t i) { return in.part(i * bytes, bytes); };
  for (size_t i = 0; i <= most_requests; ++i) fill({1, i}, out_of(i));
  std::vector<void*> sends, receives;
  void* const stale = reinterpret_cast<void*>(NCCL_NET_OPTIONAL_RECV_COMPLETION);
  until([&] { return sends.push_back(net.send(pair.sender, out_of(sends.size()), 7, out.handle(), stale)), sends.back() == nullptr; },
        "a send that is refused");
  sends.pop_back();
  CHECK(sends.size() == most_requests);
  until(
      [&] {
        return receives.push_back(net.receive(pair.receiver, in_of(receives.size()), 7, in.handle(), stale)), receives.back() == nullptr;
      },
      "a receive that is refused");
  receives.pop_back();
  CHECK(receives.size() == most_requests);
  std::vector<void*> requests = sends;
  requests.insert(requests.end(), receives.begin(), receives.end());
  std::mt19937 random(11);
  finish_all(net, requests, random);
  const size_t last = sends.size();
  requests = {net.send(pair.sender, out_of(last), 7, out.handle()), net.receive(pair.receiver, in_of(last), 7, in.handle())};
  REQUIRE((requests[0] != nullptr && requests[1] != nullptr));
  finish_all(net, requests, random);
  for (size_t i = 0; i <= last; ++i) CHECK(holds({1, i}, in_of(i)));
}

TEST_CASE("what is refused is not lost: every message arrives once, in order") {
  constexpr size_t messages = 3000, bytes = 3000;
  Net net;
  Pair pair(net);
  Memory out(net, pair.sender, 512 * bytes), in(net, pair.receiver, 512 * bytes);
  std::deque<void*> sends, receives;
  size_t sent = 0, posted = 0, taken = 0, refused = 0;
  std::string wrong;
  std::mt19937 random(5);
  until(
      [&] {
        for (int burst = static_cast<int>(random() % 400); burst > 0 && sent < messages && sends.size() < 512; --burst) {
          const std::span<std::byte> data = out.part(sent % 512 * bytes, bytes);
          fill({1, sent}, data);
          void* request = net.send(pair.sender, data, 1, out.handle());
          if (request == nullptr && ++refused != 0) break;
          sends.push_back(request), ++sent;
        }
        for (int burst = static_cast<int>(random() % 400); burst > 0 && posted < messages && receives.size() < 512; --burst) {
          void* request = net.receive(pair.receiver, in.part(posted % 512 * bytes, bytes), 1, in.handle());
          if (request == nullptr && ++refused != 0) break;
          receives.push_back(request), ++posted;
        }
        while (!sends.empty() && net.test(sends.front())) sends.pop_front();
        for (int size = 0; !receives.empty() && net.test(receives.front(), &size); ++taken) {
          receives.pop_front();
          if (size != bytes || !holds({1, taken}, in.part(taken % 512 * bytes, bytes))) wrong += fmt::format("message {}; ", taken);
        }
        return taken == messages && sends.empty();
      },
      "all messages");
  CHECK(wrong == "");
  CHECK(refused > 0);  // else this has tested nothing
}

TEST_CASE("*request is overwritten where nothing is posted, whatever was in it") {
  const int version = GENERATE(range(5, 13));
  Net net(version);
  Pair pair(net);
  Memory out(net, pair.sender, 64), in(net, pair.receiver, 64);
  char older = 0;
  for (void* stale : {reinterpret_cast<void*>(NCCL_NET_OPTIONAL_RECV_COMPLETION), static_cast<void*>(&older)}) {
    std::vector<void*> sends, receives;
    do sends.push_back(net.send(pair.sender, out.bytes(), 1, out.handle(), stale));
    while (sends.back() != nullptr && sends.back() != stale && sends.size() < 1000);
    CHECK(sends.back() == nullptr);
    do receives.push_back(net.receive(pair.receiver, in.bytes(), 1, in.handle(), stale));
    while (receives.back() != nullptr && receives.back() != stale && receives.size() < 1000);
    CHECK(receives.back() == nullptr);
    sends.pop_back(), receives.pop_back();
    sends.insert(sends.end(), receives.begin(), receives.end());
    std::mt19937 random(1);
    finish_all(net, sends, random);
  }
}

TEST_CASE("a receive that is called done early has its data soon all the same") {
  const int version = GENERATE(9, 10, 11, 12);
  Net net(version);
  Pair pair(net);
  Memory out(net, pair.sender, size_t{64} << 10), in(net, pair.receiver, size_t{64} << 10);
  for (uint64_t number = 0; number < 50; ++number) {
    fill({1, number}, out.bytes());
    void* received = net.receive(pair.receiver, in.bytes(), 1, in.handle(), reinterpret_cast<void*>(NCCL_NET_OPTIONAL_RECV_COMPLETION));
    void* sent = net.send(pair.sender, out.bytes(), 1, out.handle());
    REQUIRE((received != nullptr && sent != nullptr));
    int size = 0;
    until(
        [&] {
          if (sent != nullptr && net.test(sent)) sent = nullptr;
          if (received != nullptr && net.test(received, &size)) received = nullptr;
          return sent == nullptr && received == nullptr;
        },
        "a message");
    CHECK((size == 0 || size == static_cast<int>(size_t{64} << 10)));
    CHECK(holds({1, number}, in.bytes()));  // the send is done, so it is there
  }
}
