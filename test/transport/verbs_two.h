// Two ends of a verbs connection in one thread, over devices inside the program.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/transport/fake_verbs.h"
#include "transport/verbs/link.h"

namespace gyre::test {

/// Both ends of a connection, each with rails of its own, and memory on each side.
struct Two {
  explicit Two(int rails = 1, uint32_t paths = 1) : Two({rails, rails}, paths, false) {}
  Two(std::array<int, 2> rails, uint32_t paths, bool confirms, transport::verbs::PathOptions options = {}, std::vector<uint8_t> widths = {},
      FakeTraits traits = {}, uint32_t first = 0) {
    for (size_t e = 0; e < 2; ++e) {
      End& end = ends[e];
      for (int i = 0; i < rails[e]; ++i) {
        const std::string name = (e == 0 ? "a" : "b") + std::to_string(i);
        if (!widths.empty()) traits.width = widths[static_cast<size_t>(i)];
        fake.add_device(name, traits);
        end.opened.push_back(*transport::verbs::Rail::open(name, 1, options, fake.sysfs()));
        end.rails.push_back(end.opened.back().get());
      }
      end.memory.resize(1 << 20);
      end.link =
          *transport::verbs::Link::open(end.rails, {static_cast<uint32_t>(rails[1 - e]), paths, confirms, first}, e == 0 ? "b" : "a");
      end.registered = *transport::verbs::Registered::add(end.rails, end.memory);
    }
    REQUIRE(static_cast<bool>(a().link->join(b().link->card())));
    REQUIRE(static_cast<bool>(b().link->join(a().link->card())));
    for (End& end : ends) end.link->try_paths();
    REQUIRE(until([&] { return !a().link->trying() && !b().link->trying(); }));
  }
  struct End {
    std::vector<std::unique_ptr<transport::verbs::Rail>> opened;
    std::vector<transport::verbs::Rail*> rails;
    std::vector<std::byte> memory;
    std::unique_ptr<transport::verbs::Registered> registered;
    std::unique_ptr<transport::verbs::Link> link;
    transport::Request* send(uint64_t tag, size_t from, size_t bytes) {
      return link->send(tag, {memory.data() + from, bytes}, registered.get());
    }
    transport::Request* receive(uint64_t tag, size_t at, size_t bytes, transport::verbs::Credit::Group group = {}) {
      return link->receive(tag, {memory.data() + at, bytes}, registered.get(), group);
    }
  };
  End& a() { return ends[0]; }
  End& b() { return ends[1]; }
  void progress() {
    for (End& end : ends) (void)poll(end.rails);
    for (End& end : ends) (void)end.link->catch_up();
  }
  /// As workers do now and then.
  void tick() {
    for (End& end : ends) end.link->tick(transport::verbs::Link::Clock::now(), false);
  }
  template <class Done>
  bool until(Done done) {
    for (int i = 0; i < 100000; ++i) {
      if (done()) return true;
      progress();
    }
    return false;
  }
  transport::Request* sent(uint64_t tag, size_t from, size_t bytes) {
    transport::Request* request = nullptr;
    (void)until([&] { return (request = a().send(tag, from, bytes)) != nullptr; });
    return request;
  }

  FakeVerbs fake;
  std::array<End, 2> ends;
};

}  // namespace gyre::test
