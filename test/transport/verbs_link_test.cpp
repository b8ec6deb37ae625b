#include "transport/verbs/link.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>

#include "test/catch.h"
#include "test/transport/fake_verbs.h"
#include "test/transport/verbs_two.h"
#include "transport/verbs/registrations.h"

namespace gyre::test {
namespace {

using transport::Request;
using transport::verbs::Link;
using transport::verbs::poll;
using transport::verbs::Rail;
using transport::verbs::Registered;

void fill(std::vector<std::byte>& memory, unsigned seed) {
  std::minstd_rand random(seed + 1);
  for (auto& byte : memory) byte = static_cast<std::byte>(random());
}

/// Random messages from a to b, of four tags, whose receives are met in any order; all must arrive whole and once. `meanwhile` is called
/// often.
void random_traffic(Two& two, unsigned seed, const std::function<void(size_t done)>& meanwhile) {
  std::mt19937 random(seed);
  two.fake.shuffle(seed);
  constexpr size_t slot = 2048, messages = 400;
  fill(two.a().memory, seed);
  struct Awaited {
    Request* receive;
    size_t at, from, bytes;
  };
  std::array<std::vector<size_t>, 4> to_send;  // messages of each tag, in order
  std::vector<Awaited> awaited;
  size_t posted = 0, sent = 0, done = 0;
  std::vector<Request*> sends;
  for (int rounds = 0; done < messages && rounds < 1000000; ++rounds) {
    if (posted < messages && random() % 4 == 0) {
      // Alone, or waited for with others.
      const auto size = static_cast<uint8_t>(random() % 2 == 0 ? 1 : std::min<size_t>(1 + random() % 8, messages - posted));
      const auto reused = [&](size_t at) {
        return std::any_of(awaited.begin(), awaited.end(), [&](const Awaited& a) { return a.receive && a.at == at; });
      };
      bool room = two.b().link->has_room(size);
      for (uint8_t i = 0; i < size; ++i) room = room && !reused((posted + i) % 300 * slot);
      for (uint8_t i = 0; i < size && room; ++i) {
        const uint64_t tag = random() % 4;
        const size_t at = posted % 300 * slot, bytes = random() % 2 == 0 ? slot : random() % (slot + 1);
        awaited.push_back({two.b().receive(tag, at, slot, {size, i}), at, random() % (two.a().memory.size() - slot), bytes});
        REQUIRE(awaited.back().receive != nullptr);
        to_send[tag].push_back(posted++);
      }
    }
    auto& tag = to_send[random() % 4];
    if (!tag.empty()) {
      const Awaited& next = awaited[tag.front()];
      if (Request* send = two.a().send(static_cast<uint64_t>(&tag - to_send.data()), next.from, next.bytes)) {
        sends.push_back(send);
        tag.erase(tag.begin());
        ++sent;
      }
    }
    two.progress();
    meanwhile(done);
    for (Awaited& one : awaited) {
      if (!one.receive || !one.receive->done) continue;
      REQUIRE(one.receive->failure == nullptr);
      REQUIRE(one.receive->bytes == one.bytes);
      REQUIRE(std::equal(two.b().memory.data() + one.at, two.b().memory.data() + one.at + one.bytes, two.a().memory.data() + one.from));
      two.b().link->release(one.receive);
      one.receive = nullptr;
      ++done;
    }
    std::erase_if(sends, [&](Request* send) {
      if (!send->done) return false;
      two.a().link->release(send);
      return true;
    });
  }
  CHECK(done == messages);
  CHECK(two.until([&] { return std::all_of(sends.begin(), sends.end(), [](Request* send) { return send->done; }); }));
}

}  // namespace

TEST_CASE("a message of any size arrives whole, with its size, and nothing behind it is touched") {
  for (const int rails : {1, 2, 3}) {
    for (const uint32_t paths : {1U, 2U}) {
      for (const size_t bytes : {0U, 1U, 63U, 220U, 221U, 4096U, 65535U, 65536U, 65537U, 500001U}) {
        INFO(rails << " rails, " << paths << " paths on each, " << bytes << " bytes");
        Two two(rails, paths);
        fill(two.a().memory, 1);
        const auto untouched = two.b().memory;
        Request* receive = two.b().receive(7, 100, bytes + 50);
        Request* send = two.sent(7, 3, bytes);
        REQUIRE(send != nullptr);
        REQUIRE(two.until([&] { return send->done && receive->done; }));
        CHECK(send->failure == nullptr);
        CHECK(receive->failure == nullptr);
        CHECK(receive->bytes == bytes);
        const auto* came = two.b().memory.data();
        CHECK(std::equal(came + 100, came + 100 + bytes, two.a().memory.data() + 3));
        CHECK(std::equal(came, came + 100, untouched.data()));
        CHECK(std::equal(came + 100 + bytes, came + two.b().memory.size(), untouched.data() + 100 + bytes));
      }
    }
  }
}

TEST_CASE("short messages begin on an end's own port, and are spread over all from there") {
  constexpr size_t bytes = 4096;
  for (const uint32_t first : {0U, 1U, 2U}) {
    Two two({3, 3}, 1, false, {}, {}, {}, first);
    const auto sent_by = [&](uint32_t rail) { return two.fake.bytes_of("a" + std::to_string(rail % 3)); };
    for (const uint32_t message : {0U, 1U, 2U}) {
      const std::array<uint64_t, 3> before{sent_by(0), sent_by(1), sent_by(2)};
      Request* receive = two.b().receive(1, 0, bytes);
      Request* send = two.sent(1, 0, bytes);
      REQUIRE(send != nullptr);
      REQUIRE(two.until([&] { return send->done && receive->done; }));
      two.a().link->release(send), two.b().link->release(receive);
      uint32_t by = 3;
      for (const uint32_t rail : {0U, 1U, 2U})
        if (sent_by(rail) - before.at(rail) >= bytes) by = rail;
      CHECK((message == 0) == (by == first));
    }
  }
}

TEST_CASE("a send before its receive is tried again") {
  Two two;
  CHECK(two.a().send(1, 0, 10) == nullptr);
  two.progress();
  Request* other = two.b().receive(2, 0, 10);
  two.progress();
  CHECK(two.a().send(1, 0, 10) == nullptr);
  Request* receive = two.b().receive(1, 0, 10);
  REQUIRE(two.until([&] { return two.a().send(1, 0, 10) != nullptr; }));
  REQUIRE(two.until([&] { return receive->done; }));
  CHECK(!other->done);
}

TEST_CASE("a message that is larger than its receive is an error on both sides, and nothing is written") {
  Two two;
  fill(two.a().memory, 1);
  const auto untouched = two.b().memory;
  Request* receive = two.b().receive(1, 0, 1000);
  Request* send = two.sent(1, 0, 1001);
  REQUIRE(two.until([&] { return send->done && receive->done; }));
  CHECK(send->failure != nullptr);
  CHECK(receive->failure != nullptr);
  CHECK(two.b().memory == untouched);
}

TEST_CASE("receives of several tags are met in any order, in order for each tag, by random traffic") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Two two(1 + static_cast<int>(seed % 3), 1 + seed % 2);
    random_traffic(two, seed, [](size_t) {});
  }
}

TEST_CASE("paths that fail in mid traffic lose nothing and bring nothing twice, while one is left") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    const int rails = 2 + static_cast<int>(seed % 3);
    Two two(rails, 1 + seed % 2);
    std::mt19937 random(seed);
    int cuts = 0;
    random_traffic(two, seed, [&](size_t done) {
      // All but the last rail, at some time, in one of the ways that they fail.
      if (cuts == rails - 1 || done < static_cast<size_t>(cuts + 1) * 60 || random() % 20 != 0) return;
      const std::string name = (random() % 2 == 0 ? "a" : "b") + std::to_string(cuts++);
      switch (random() % 3) {
        case 0:
          return two.fake.cut_path(name);
        case 1:
          return two.fake.lose_acknowledgements(name);
        default:
          return two.fake.kill(name);
      }
    });
    CHECK(cuts == rails - 1);
    CHECK(!two.a().link->failure());
    CHECK(!two.b().link->failure());
  }
}

TEST_CASE("a path that carries again is used again, and another may fail then") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Two two(2, 1 + seed % 2);
    std::mt19937 random(seed);
    const size_t all = two.a().link->alive();
    for (int round = 0; round < 4; ++round) {
      const std::string name = (random() % 2 == 0 ? "a" : "b") + std::to_string(round % 2);
      bool cut = false;
      random_traffic(two, seed + static_cast<unsigned>(round), [&](size_t done) {
        if (cut || done < 50) return;
        cut = true;
        random() % 2 == 0 ? two.fake.cut_path(name) : two.fake.lose_acknowledgements(name);
      });
      REQUIRE(cut);
      two.fake.restore(name);
      for (auto& end : two.ends) end.link->retry_at_once();
      REQUIRE(two.until([&] { return two.tick(), two.a().link->alive() == all && two.b().link->alive() == all; }));
    }
    CHECK(!two.a().link->failure());
  }
}

TEST_CASE("a path that goes on failing is tried again for ever, and the messages take the other one") {
  Two two(2);
  two.fake.cut_path("a0");
  int failures = 0;
  for (unsigned round = 0; round < 3; ++round) {
    random_traffic(two, round + 1, [&](size_t) {
      if (two.a().link->alive() == 2) return;
      for (auto& end : two.ends) end.link->retry_at_once();
      two.tick();
      ++failures;
    });
  }
  CHECK(failures > 1000);
  CHECK(two.a().link->alive() == 1);
  two.fake.restore("a0");
  for (auto& end : two.ends) end.link->retry_at_once();
  CHECK(two.until([&] { return two.tick(), two.a().link->alive() == 2 && two.b().link->alive() == 2; }));
}

TEST_CASE("where packets may pass each other, a large message's immediate goes by itself") {
  transport::verbs::PathOptions adaptive;
  adaptive.adaptive_routing = true;
  adaptive.adaptive_threshold = 1000;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    INFO("seed " << seed);
    Two two({2, 2}, 1, false, adaptive);
    bool cut = false;
    random_traffic(two, seed, [&](size_t done) {
      if (!cut && done > 150) two.fake.lose_acknowledgements("a1");
      cut = cut || done > 150;
    });
    CHECK(!two.a().link->failure());
  }
  Two two({1, 1}, 1, false, adaptive);
  const auto before = two.fake.counts();
  Request* receive = two.b().receive(1, 0, 2000);
  Request* send = two.sent(1, 0, 2000);
  CHECK(two.until([&] { return send->done && receive->done; }));
  CHECK(receive->bytes == 2000);
  CHECK(two.fake.counts().sends - before.sends == 3);
}

TEST_CASE("long messages are split over ports as they are fast, and short ones take turns of that kind") {
  Two two({2, 2}, 1, false, {}, {1, 2});  // lanes: one, and four
  for (const auto& [bytes, times] : {std::pair(size_t{500000}, 1), std::pair(size_t{2000}, 100)}) {
    const uint64_t slow = two.fake.bytes_of("a0"), fast = two.fake.bytes_of("a1");
    for (int i = 0; i < times; ++i) {
      Request* receive = two.b().receive(1, 0, bytes);
      Request* send = two.sent(1, 0, bytes);
      REQUIRE(two.until([&] { return send->done && receive->done; }));
      two.a().link->release(send);
      two.b().link->release(receive);
    }
    const double share = static_cast<double>(two.fake.bytes_of("a1") - fast) / static_cast<double>(two.fake.bytes_of("a0") - slow);
    CHECK(share > 3.5);
    CHECK(share < 4.5);
  }
}

TEST_CASE("credits that have come are not sent again when their path fails, and those that have not are") {
  Two two(2);
  std::vector<Request*> receives;
  for (size_t i = 0; i < 100; ++i) receives.push_back(two.b().receive(1, i * 8, 8));
  for (int i = 0; i < 1000; ++i) two.progress();
  const auto before = two.fake.counts();
  two.fake.cut_path("b0");
  receives.push_back(two.b().receive(1, 800, 8));
  REQUIRE(two.until([&] { return two.a().link->alive() == 1 && two.b().link->alive() == 1; }));
  for (int i = 0; i < 1000; ++i) two.progress();
  CHECK(two.fake.counts().sends - before.sends < 20);
  for (size_t i = 0; i < receives.size(); ++i) REQUIRE(two.sent(1, 0, 8) != nullptr);
  CHECK(two.until([&] { return std::all_of(receives.begin(), receives.end(), [](Request* r) { return r->done; }); }));
}

TEST_CASE("ends of different numbers of ports use them all") {
  for (const auto rails : {std::array{1, 3}, std::array{4, 2}, std::array{3, 2}}) {
    Two two(rails, 1, false);
    CHECK(two.a().link->alive() == static_cast<size_t>(std::max(rails[0], rails[1])));
    random_traffic(two, 3, [](size_t) {});
  }
}

TEST_CASE("with confirmation a send is done when the receiver has said so, and what a device had taken and lost is sent again") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Two two({2, 2}, 1, true);
    bool killed = false;
    random_traffic(two, seed, [&](size_t done) {
      if (!killed && done > 100) two.fake.kill("b0");
      killed = killed || done > 100;
    });
    CHECK(!two.a().link->failure());
  }
  Two two({1, 1}, 1, true);
  Request* receive = two.b().receive(1, 0, 8);
  Request* send = two.sent(1, 0, 8);
  for (int i = 0; i < 100; ++i) (void)poll(std::span(two.a().rails).first(1));
  CHECK(!send->done);  // the device has it, and the receiver does not look
  CHECK(two.until([&] { return send->done && receive->done; }));
}

TEST_CASE("receives that are waited for together are told of by one immediate") {
  Two two;
  fill(two.a().memory, 1);
  const auto before = two.fake.counts();
  std::array<Request*, 8> receives{}, sends{};
  REQUIRE(two.b().link->has_room(8));
  for (uint8_t i = 0; i < 8; ++i) receives[i] = two.b().receive(i, i * 100U, 100, {8, i});
  for (uint8_t i = 0; i < 8; ++i) {
    // In another order; the fifth is shorter than its receive.
    const uint8_t tag = 7 - i;
    sends[tag] = two.sent(tag, tag * 100U, tag == 4 ? 60 : 100);
    CHECK(two.until([&] { return sends[tag]->done; }));
    if (i < 7) CHECK(receives[7]->done == false);
  }
  CHECK(two.until([&] { return std::all_of(receives.begin(), receives.end(), [](Request* r) { return r->done; }); }));
  for (uint8_t i = 0; i < 8; ++i) CHECK(receives[i]->bytes == (i == 4 ? 60 : 100));
  CHECK(std::equal(two.a().memory.begin(), two.a().memory.begin() + 400, two.b().memory.begin()));
  CHECK(two.fake.counts().immediates - before.immediates == 2);
  CHECK(two.fake.counts().sends - before.sends == 16);
}

TEST_CASE("256 receives are under way, and then none is taken, nor lost") {
  Two two;
  std::vector<Request*> receives;
  for (size_t i = 0; i < 256; ++i) {
    Request* receive = nullptr;
    REQUIRE(two.until([&] { return (receive = two.b().receive(i, i * 8, 8)) != nullptr; }));
    receives.push_back(receive);
  }
  for (int i = 0; i < 10; ++i) {
    CHECK(two.b().receive(1, 0, 8) == nullptr);
    two.progress();
  }
  for (size_t i = 0; i < 256; ++i) REQUIRE(two.sent(255 - i, 0, 8) != nullptr);
  CHECK(two.until([&] { return std::all_of(receives.begin(), receives.end(), [](Request* r) { return r->done; }); }));
}

TEST_CASE("one message on one rail is two work requests: its data, and its receive's credit") {
  Two two;
  for (const size_t bytes : {8U, 65536U, 1000000U}) {
    const auto before = two.fake.counts();
    Request* receive = two.b().receive(1, 0, bytes);
    Request* send = two.sent(1, 0, bytes);
    REQUIRE(two.until([&] { return send->done && receive->done; }));
    CHECK(two.fake.counts().sends - before.sends == 2);
  }
}

// What goes inline the processor reads, and a GPU's memory it can't.
TEST_CASE("a short message goes inline, but not from a GPU's memory") {
  Two two;
  std::vector<std::byte> gpu(4096);
  two.fake.add_gpu(gpu, true);
  transport::verbs::Registrations registrations(two.a().rails, 0);
  const auto of_gpu = *registrations.add({gpu, transport::MemoryKind::cuda});
  const auto inlined = [&](std::span<const std::byte> data, const Registered* memory) {
    const auto before = two.fake.counts();
    Request* receive = two.b().receive(1, 0, data.size());
    Request* send = nullptr;
    REQUIRE(two.until([&] { return (send = two.a().link->send(1, data, memory)) != nullptr; }));
    REQUIRE(two.until([&] { return send->done && receive->done; }));
    CHECK(send->failure == nullptr);
    return two.fake.counts().inlined - before.inlined - 1;  // the receive's credit always is
  };
  for (const size_t bytes : {8U, 220U}) {
    INFO(bytes << " bytes");
    CHECK(inlined(std::span(two.a().memory).first(bytes), two.a().registered.get()) == 1);
    CHECK(inlined(std::span(gpu).first(bytes), static_cast<const Registered*>(of_gpu.get())) == 0);
  }
}

TEST_CASE("a path that is cut ends the connection of one rail, and says why") {
  Two two;
  Request* receive = two.b().receive(1, 0, 100000);
  two.progress();
  two.fake.cut_path("a0");
  Request* send = two.sent(1, 0, 100000);
  REQUIRE(send != nullptr);
  REQUIRE(two.until([&] { return send->done; }));
  CHECK(send->failure != nullptr);
  REQUIRE(two.a().link->failure().has_value());
  CHECK(two.a().link->failure()->what.find("a0:1 to b: queue pair") == 0);
  CHECK(two.a().link->failure()->what.find("no acknowledgement after all retries") != std::string::npos);
  two.b().link->break_off("the peer has gone");
  CHECK(receive->done);
  CHECK(receive->failure == std::string("the peer has gone"));
  Request* later = two.b().receive(1, 0, 8);
  REQUIRE(later != nullptr);
  CHECK(later->done);
  CHECK(later->failure == std::string("the peer has gone"));
}

TEST_CASE("no call may fail without a reason, and nothing stays open") {
  for (const char* call : {"get_device_list", "open_device", "query_port", "alloc_pd", "create_cq", "create_qp", "modify_qp", "reg_mr"}) {
    INFO(call);
    FakeVerbs fake;
    fake.add_device("a0");
    fake.fail(call, ENOMEM);
    std::string why;
    {
      auto rail = Rail::open("a0", 1, {}, fake.sysfs());
      if (rail) {
        Rail* one = rail->get();
        auto link = Link::open({&one, 1}, {}, "b");
        // A queue pair that can't be made with that much inline data is made with less.
        if (link)
          why = std::string(call) == "create_qp" ? "create_qp" : "";
        else
          why = link.error().what;
      } else {
        why = rail.error().what;
      }
    }
    CHECK(why.find(std::string(call) == "reg_mr" ? "ulimit -l" : call) != std::string::npos);
    CHECK(fake.open_handles() == 0);
  }
}

TEST_CASE("a peer that writes into a credit that waits does no harm here") {
  Two two(1);
  for (const uint64_t tag : {1U, 2U}) REQUIRE(two.b().receive(tag, 0, 8) != nullptr);
  REQUIRE(two.sent(2, 0, 8) != nullptr);
  uint64_t rings = 0;  // where the peer writes, as the card says; the credits come first
  std::memcpy(&rings, two.a().link->card().data() + sizeof rings, sizeof rings);
  auto* waits = reinterpret_cast<transport::verbs::Credit*>(rings);
  REQUIRE(waits->sequence == 1);
  waits->sequence = 77;
  Request* send = two.a().send(1, 0, 8);
  REQUIRE(send != nullptr);
  CHECK(two.until([&] { return send->done; }));
}

}  // namespace gyre::test
