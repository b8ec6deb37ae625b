// By which flush a GPU sees what has come into its memory.
#include "engine/landing.h"

#include <list>

#include "test/catch.h"

using namespace gyre;
using engine::Landing;

namespace {

/// A network whose flushes end when the test wants it; as many as were never given back are under way.
class FlushedWorker final : public transport::Worker {
 public:
  Result<std::unique_ptr<transport::Listener>> listen() override { return no(); }
  Result<std::unique_ptr<transport::Endpoint>> connect(std::string_view, std::string_view) override { return no(); }
  Result<std::unique_ptr<transport::Memory>> register_memory(std::span<std::byte>, transport::MemoryKind kind) override {
    if (kind != transport::MemoryKind::cuda) return no();
    return std::make_unique<transport::Memory>();
  }
  Status moves_gpu_memory() const override { return {}; }
  Result<transport::Request*> flush(const transport::Memory&, const std::byte* data) override {
    if (refuses) return no();
    flushed = data;
    return at_once ? nullptr : &under_way.emplace_back();
  }
  void release_flush(transport::Request* request) override {
    under_way.remove_if([&](const transport::Request& one) { return &one == request; });
  }
  unsigned progress() override { return 0; }

  bool at_once = false, refuses = false;
  const std::byte* flushed = nullptr;
  std::list<transport::Request> under_way;

 private:
  static Error no() { return {Code::system, "the test does not want it"}; }
};

struct Landed {
  std::byte* at(size_t byte) const { return memory.get() + byte; }

  FlushedWorker worker;
  Landing::Region memory{new std::byte[64]};
  std::unique_ptr<Landing> landing = *Landing::open(worker, memory, 64, -1);
};

}  // namespace

TEST_CASE("a flush shows all that came before it began, and what came since waits for the next") {
  Landed here;
  const uint64_t first = here.landing->came(here.at(0)), second = here.landing->came(here.at(8));
  CHECK(first == second);
  CHECK(!here.landing->seen(first));
  CHECK(here.worker.flushed == here.at(8));
  const uint64_t third = here.landing->came(here.at(16));
  CHECK(third != second);
  CHECK(!here.landing->seen(third));
  REQUIRE(here.worker.under_way.size() == 1);  // one at a time
  here.worker.under_way.front().done = true;
  CHECK(!here.landing->seen(third));
  CHECK(here.landing->seen(first));
  CHECK(here.worker.flushed == here.at(16));
  REQUIRE(here.worker.under_way.size() == 1);
  here.worker.under_way.front().done = true;
  CHECK(here.landing->seen(third));
  CHECK(here.worker.under_way.empty());
  CHECK(!here.landing->failure());
}

TEST_CASE("where nothing need be flushed all is seen as it comes") {
  Landed here;
  here.worker.at_once = true;
  for (size_t i = 0; i < 4; ++i) CHECK(here.landing->seen(here.landing->came(here.at(i))));
}

TEST_CASE("nothing is seen after a flush that failed, or could not begin") {
  for (const bool begins : {true, false}) {
    Landed here;
    here.worker.refuses = !begins;
    const uint64_t first = here.landing->came(here.at(0));
    CHECK(!here.landing->seen(first));
    if (begins) {
      here.worker.under_way.front().failure = "the test does not want it";
      here.worker.under_way.front().done = true;
    }
    CHECK(!here.landing->seen(first));
    CHECK(!here.landing->seen(here.landing->came(here.at(0))));
    REQUIRE(here.landing->failure());
    CHECK(here.landing->failure()->what.find("the test does not want it") != std::string::npos);
    CHECK(here.worker.under_way.empty());
  }
}

TEST_CASE("a flush that is under way at the end is given back") {
  Landed here;
  CHECK(!here.landing->seen(here.landing->came(here.at(0))));
  here.landing.reset();
  CHECK(here.worker.under_way.empty());
}
