#include "transport/verbs/link.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>

#include "test/catch.h"
#include "test/transport/fake_verbs.h"

namespace gyre::test {
namespace {

using transport::Request;
using transport::verbs::Link;
using transport::verbs::poll;
using transport::verbs::Rail;
using transport::verbs::Registered;

/// Both ends of a connection, each with rails of its own, and memory on each side.
struct Two {
  explicit Two(int rails = 1, uint32_t paths = 1, size_t bytes = 1 << 20) {
    for (auto& end : ends) {
      for (int i = 0; i < rails; ++i) {
        const std::string name = (&end == &ends[0] ? "a" : "b") + std::to_string(i);
        fake.add_device(name);
        end.opened.push_back(*Rail::open(name, 1, {}, fake.sysfs()));
        end.rails.push_back(end.opened.back().get());
      }
      end.memory.resize(bytes);
      end.link = *Link::open(end.rails, paths, &end == &ends[0] ? "b" : "a");
      end.registered = *Registered::add(end.rails, end.memory);
    }
    REQUIRE(static_cast<bool>(a().link->join(b().link->card())));
    REQUIRE(static_cast<bool>(b().link->join(a().link->card())));
  }
  struct End {
    std::vector<std::unique_ptr<Rail>> opened;
    std::vector<Rail*> rails;
    std::vector<std::byte> memory;
    std::unique_ptr<Registered> registered;
    std::unique_ptr<Link> link;
    Request* send(uint64_t tag, size_t from, size_t bytes) { return link->send(tag, {memory.data() + from, bytes}, registered.get()); }
    Request* receive(uint64_t tag, size_t at, size_t bytes) { return link->receive(tag, {memory.data() + at, bytes}, registered.get()); }
  };
  End& a() { return ends[0]; }
  End& b() { return ends[1]; }
  void progress() {
    for (End& end : ends)
      for (Rail* rail : end.rails) (void)poll(*rail);
    for (End& end : ends) (void)end.link->catch_up();
  }
  template <class Done>
  bool until(Done done) {
    for (int i = 0; i < 100000; ++i) {
      if (done()) return true;
      progress();
    }
    return false;
  }
  Request* sent(uint64_t tag, size_t from, size_t bytes) {
    Request* request = nullptr;
    (void)until([&] { return (request = a().send(tag, from, bytes)) != nullptr; });
    return request;
  }

  FakeVerbs fake;
  std::array<End, 2> ends;
};

void fill(std::vector<std::byte>& memory, unsigned seed) {
  std::minstd_rand random(seed + 1);
  for (auto& byte : memory) byte = static_cast<std::byte>(random());
}

/// Random messages from a to b, of four tags, whose receives are met in any order; all must arrive whole and once. `meanwhile` is called often.
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
    if (posted < messages && random() % 2 == 0) {
      const uint64_t tag = random() % 4;
      const size_t at = posted % 300 * slot;
      const bool reused = std::any_of(awaited.begin(), awaited.end(), [&](const Awaited& a) { return a.receive && a.at == at; });
      Request* receive = reused ? nullptr : two.b().receive(tag, at, slot);
      if (receive) {
        awaited.push_back({receive, at, random() % (two.a().memory.size() - slot), random() % (slot + 1)});
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
        auto link = Link::open({&one, 1}, 1, "b");
        // A queue pair that can't be made with that much inline data is made with less.
        if (link) why = std::string(call) == "create_qp" ? "create_qp" : "";
        else why = link.error().what;
      } else {
        why = rail.error().what;
      }
    }
    CHECK(why.find(std::string(call) == "reg_mr" ? "ulimit -l" : call) != std::string::npos);
    CHECK(fake.open_handles() == 0);
  }
}

}  // namespace gyre::test
