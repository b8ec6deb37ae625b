// Mapped calls of one plan after each other: what all ranks show is looked up again only where one of them shows something else.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/engine/heap_allocator.h"
#include "test/ranks.h"
#include "test/slow_builds.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::first_wrong;
using gyre::test::run_ranks;

namespace {

constexpr size_t summed = 1000;  // floats: more than is shown in copies at best

/// Memory of a rank, from which each call takes a buffer, and which is now and then another.
class Wandering {
 public:
  explicit Wandering(unsigned seed) : random_(seed) { renew(); }
  float* next() {
    const auto what = random_() % 32;
    if (what == 0) renew();
    if (what == 1) at_ = summed - at_;  // the other half of it
    return what == 2 ? private_.data() : heap_->data() + at_;
  }

 private:
  // First what was there is released, so that the new may lie where it lay.
  void renew() { heap_.reset(), heap_ = std::make_unique<test::HeapVector<float>>(2 * summed); }

  std::mt19937 random_;
  std::unique_ptr<test::HeapVector<float>> heap_;
  std::vector<float> private_ = std::vector<float>(summed);
  size_t at_ = 0;
};

// Each rank's numbers are other ones in each call.
std::string sums_right(Communicator& communicator, int calls, bool in_place) {
  Wandering inputs(static_cast<unsigned>(communicator.rank()));
  Wandering outputs(static_cast<unsigned>(communicator.rank()) + 100);
  for (int i = 0; i < calls; ++i) {
    float* input = inputs.next();
    float* output = in_place ? input : outputs.next();
    float expected = 0;
    for (Rank r = 0; r < communicator.size(); ++r) expected += static_cast<float>(i * 8 + r);
    std::fill_n(input, summed, static_cast<float>(i * 8 + communicator.rank()));
    if (!in_place) std::fill_n(output, summed, -1.0F);
    const Status status = communicator.all_reduce(input, output, summed, DataType::float32, ReduceOp::sum);
    if (!status) return status.error().what;
    const auto wrong = std::count_if(output, output + summed, [&](float value) { return value != expected; });
    if (wrong != 0) return fmt::format("call {}: {} of {} wrong", i, wrong, summed);
  }
  return {};
}

}  // namespace

TEST_CASE("equal calls are right whichever ranks have their buffers where they had them, or elsewhere, or where others were") {
  const bool in_place = GENERATE(true, false);
  for (const int ranks : {2, 3}) {
    const int calls = test::sanitized ? 300 : 1000;
    CHECK(first_wrong(run_ranks(ranks, all_configured({"GYRE_TRANSPORT=shm"}),
                                [&](Communicator& c) { return sums_right(c, calls, in_place); })) == "");
  }
}
