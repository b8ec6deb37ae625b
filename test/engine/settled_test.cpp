// Mapped calls of one plan after each other: what all ranks show is looked up again only where one of them shows something else.
#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <memory>
#include <random>
#include <vector>

#include "engine/communicator.h"
#include "test/catch.h"
#include "test/engine/heap_allocator.h"
#include "test/mappings.h"
#include "test/ranks.h"
#include "test/slow_builds.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::engine;
using gyre::test::all_configured;
using gyre::test::error_of;
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

std::string sum(Communicator& communicator, test::HeapVector<float>& data) {
  return error_of(communicator.all_reduce(data.data(), data.data(), data.size(), DataType::float32, ReduceOp::sum));
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

TEST_CASE("a peer lets go of memory that is released while a call that later ones repeat is in flight") {
  constexpr size_t bytes = 37 * 4096;
  constexpr size_t mapped = transport::SharedMemory::footprint(bytes);
  std::barrier released(2);
  const auto body = [&](Communicator& c) -> std::string {
    test::HeapVector<float> data(summed);
    auto other = std::make_unique<test::HeapVector<float>>(bytes / sizeof(float));
    std::string wrong = sum(c, *other);
    if (c.rank() == 1) other.reset();
    wrong += sum(c, data);  // with news
    if (c.rank() == 0 && test::mappings_of(mapped) != 2) wrong += "not mapped";
    if (c.rank() == 1) released.arrive_and_wait();
    const auto begun = c.start({Collective::all_reduce, summed, DataType::float32, ReduceOp::sum}, data.data(), data.data());
    other.reset();
    if (c.rank() == 0) released.arrive_and_wait();
    wrong += error_of(begun ? c.wait(*begun) : Status(begun.error())) + sum(c, data) + sum(c, data);
    return test::mappings_of(mapped) == 0 ? wrong : wrong + "still mapped";
  };
  CHECK(first_wrong(run_ranks(2, all_configured({"GYRE_TRANSPORT=shm"}), body)) == "");
}
