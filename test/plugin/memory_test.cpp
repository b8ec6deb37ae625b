// Registrations, counted.
#include "plugin/memory.h"

#include <thread>

#include "test/catch.h"
#include "test/plugin/loopback_provider.h"

using namespace gyre;
using namespace gyre::plugin;

namespace {

struct Registered {
  std::unique_ptr<transport::Worker> open() {
    return std::make_unique<test::FaultyWorker>(*transport::open_posted_loopback_worker({}), faults);
  }
  test::Faults faults;
  std::unique_ptr<transport::Worker> worker = open();
  MemoryCache cache;
  std::array<std::byte, 4096> buffer{};
};

}  // namespace

TEST_CASE("memory: a range that is registered again is one registration, which ends when it is given back as often") {
  Registered r;
  auto* first = *r.cache.add(*r.worker, r.buffer.data(), 100, MemoryKind::host);
  for (int i = 0; i < 9; ++i) CHECK(*r.cache.add(*r.worker, r.buffer.data(), 100, MemoryKind::host) == first);
  CHECK(r.faults.registered == 1);
  for (int i = 0; i < 9; ++i) {
    CHECK(r.cache.give_back(first));
    CHECK(r.faults.registered == 1);
  }
  CHECK(r.cache.give_back(first));
  CHECK(r.faults.registered == 0);
  CHECK(r.cache.size() == 0);
}

TEST_CASE("memory: another place, length, kind or worker is another registration") {
  Registered r;
  const auto other = r.open();
  std::vector<Memory*> all{
      *r.cache.add(*r.worker, r.buffer.data(), 100, MemoryKind::host), *r.cache.add(*r.worker, r.buffer.data() + 1, 100, MemoryKind::host),
      *r.cache.add(*r.worker, r.buffer.data(), 101, MemoryKind::host), *r.cache.add(*r.worker, r.buffer.data(), 100, MemoryKind::cuda),
      *r.cache.add(*other, r.buffer.data(), 100, MemoryKind::host),
  };
  CHECK(r.faults.registered == all.size());
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  for (auto* memory : all) CHECK(r.cache.give_back(memory));
  CHECK(r.faults.registered == 0);
}

TEST_CASE("memory: what can't be registered is an error, and nothing is kept of it") {
  Registered r;
  r.faults.registration = Error{Code::system, "no more memory can be locked"};
  const auto refused = r.cache.add(*r.worker, r.buffer.data(), 100, MemoryKind::host);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::system);
  CHECK(refused.error().what == "no more memory can be locked");
  CHECK(r.cache.size() == 0);
  r.faults.registration.reset();
  CHECK(r.cache.add(*r.worker, r.buffer.data(), 100, MemoryKind::host));
}

TEST_CASE("memory: what is given back too often, or was never given, is an error and does no harm") {
  Registered r;
  auto* memory = *r.cache.add(*r.worker, r.buffer.data(), 100, MemoryKind::host);
  auto* other = *r.cache.add(*r.worker, r.buffer.data(), 50, MemoryKind::host);
  CHECK(r.cache.give_back(memory));
  for (void* wrong : {static_cast<void*>(memory), static_cast<void*>(&r), static_cast<void*>(nullptr)}) {
    const auto status = r.cache.give_back(static_cast<Memory*>(wrong));
    REQUIRE_FALSE(status);
    CHECK(status.error().code == Code::invalid_argument);
  }
  CHECK(r.faults.registered == 1);
  CHECK(r.cache.give_back(other));
}

TEST_CASE("memory: threads may register the same ranges at a time") {
  Registered r;
  const auto use = [&](size_t offset) {
    for (size_t i = 0; i < 2000; ++i) {
      auto memory = r.cache.add(*r.worker, r.buffer.data() + (i + offset) % 8, 100, MemoryKind::host);
      if (!memory || !r.cache.give_back(*memory)) return false;
    }
    return true;
  };
  std::array<bool, 3> good{};
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < good.size(); ++t) threads.emplace_back([&, t] { good[t] = use(t); });
  }
  CHECK(good == std::array{true, true, true});
  CHECK(r.faults.registered == 0);
}
