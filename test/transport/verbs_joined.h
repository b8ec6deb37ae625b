// Two workers of this process, joined over devices inside the program and TCP of this host.
#pragma once
#include <memory>
#include <string>

#include "test/becomes.h"
#include "test/catch.h"
#include "test/transport/fake_verbs.h"
#include "test/transport/loopback_address.h"
#include "transport/loopback_posted.h"
#include "transport/verbs.h"

namespace gyre::test {

inline transport::VerbsWay way(const FakeVerbs& fake, const std::string& prefix, int rails) {
  transport::VerbsWay way;
  way.sysfs = fake.sysfs();
  for (int i = 0; i < rails; ++i) way.ports.push_back({prefix + std::to_string(i), 1});
  way.address = loopback_address(1);
  return way;
}

struct Joined {
  explicit Joined(int rails = 1, transport::Slots slots = {}, bool falls_back = false, bool confirms = false,
                  const FakeTraits& traits = {}) {
    for (const char* prefix : {"a", "b"}) {
      for (int i = 0; i < rails; ++i) fake.add_device(prefix + std::to_string(i), traits);
      transport::VerbsWay by = way(fake, prefix, rails);
      by.confirm = confirms;
      if (falls_back) by.open_fallback = [] { return transport::open_posted_loopback_worker({}, 5); };
      (*prefix == 'a' ? a_worker : b_worker) = *transport::open_verbs_worker(slots, by);
    }
  }
  void join() {
    auto listener = *a_worker->listen();
    b = *b_worker->connect(listener->address(), "who I am");
    REQUIRE(becomes([&] {
      progress();
      if (!a) a = *listener->accept();
      return a && *a->ready() && *b->ready();
    }));
  }
  void progress() {
    (void)a_worker->progress();
    (void)b_worker->progress();
  }
  /// b closes as it should, and is gone.
  void leave() {
    b->start_close();
    REQUIRE(becomes([&] { return progress(), b->closed(); }));
    b.reset();
  }
  FakeVerbs fake;
  std::unique_ptr<transport::Worker> a_worker, b_worker;
  std::unique_ptr<transport::Endpoint> a, b;
};

}  // namespace gyre::test
