// Every schedule of every family is proven: for 1 to 64 ranks, each collective, grid and root (shapes.h), 1 to 4 channels, in and out of
// place. What is proven is what runs, which is the fused schedule: over slots and with posted receives, and with its copies to scratch
// where connections are mapped. Two credits, which is the least, and one slice; for a sample, four slices that share eight credits.
#include <ctime>
#include <map>

#include "schedule/fuse.h"
#include "schedule/verify.h"
#include "test/catch.h"
#include "test/slow_builds.h"
#include "test/topo/shapes.h"

using namespace gyre;
using namespace gyre::topo;
using schedule::Mode;
using schedule::Verifier;

namespace {

constexpr Mode all_modes[] = {Mode::buffered, Mode::posted, Mode::mapped};
constexpr Mode by_message[] = {Mode::buffered, Mode::posted};
constexpr Mode by_mapping[] = {Mode::mapped};

/// Empty: proven in these modes, in and out of place.
std::string flaw(Verifier& verifier, const schedule::Schedule& schedule, std::span<const Mode> modes, uint32_t slices) {
  for (const Mode mode : modes) {
    for (const bool in_place : {false, true}) {
      if (in_place && !schedule.layout().has_in_place()) continue;
      const auto proof = verifier.run({2 * slices, slices, mode, in_place});
      if (!proof) return proof.error().what;
    }
  }
  return {};
}

/// Empty: the fused schedule is proven in every mode in which it runs, with each of these numbers of slices in flight.
std::string flaw_fused(const schedule::Schedule& made, std::span<const uint32_t> slices_in_flight) {
  const auto flaw_in = [&](const schedule::Schedule& fused, std::span<const Mode> modes) {
    Verifier verifier(fused);
    for (const uint32_t slices : slices_in_flight) {
      if (std::string what = flaw(verifier, fused, modes, slices); !what.empty()) return what;
    }
    return std::string();
  };
  const schedule::Schedule fused = schedule::fuse(made);
  const schedule::Schedule staged = schedule::fuse(made, true);
  if (fused == staged) return flaw_in(fused, all_modes);  // most do not send from scratch what they have elsewhere
  const std::string what = flaw_in(fused, by_message);
  return what.empty() ? flaw_in(staged, by_mapping) : what;
}

// Sanitizers make this up to twenty times slower and have nothing to find in so many alike.
int next(int ranks) { return ranks + (test::sanitized && ranks >= 8 ? 11 : 1); }

void prove(uint32_t channels) {
  std::map<std::pair<std::string_view, Collective>, int> proven;
  for (int ranks = 1; ranks <= 64; ranks = next(ranks)) {
    test::each_shape(ranks, [&](const Family& family, Shape shape) {
      shape.channels = channels;
      INFO(family.name << ": " << text(shape));
      const schedule::Schedule made = *make(family.name, shape);
      const bool sampled = static_cast<uint32_t>(ranks + shape.root) % 8 == channels;
      constexpr uint32_t slices[] = {1, 4};
      CHECK(flaw_fused(made, std::span(slices, sampled ? 2 : 1)) == "");
      ++proven[{family.name, shape.collective}];
      if (ranks > 16) return;
      Verifier verifier(made);
      CHECK(flaw(verifier, made, all_modes, 1) == "");
    });
  }
  // Nothing was left out: a family that needs a grid of nodes has one for every number of ranks.
  for (const Family& family : families()) {
    for (const Collective collective : all_collectives()) {
      if (!refusal(family, {collective, 4, channels, 0, {2, 2}}).empty()) continue;
      INFO(family.name << " " << name(collective));
      CHECK(proven[{family.name, collective}] >= (test::sanitized ? 13 : 64));
    }
  }
}

}  // namespace

TEST_CASE("every schedule is proven on 1 channel", "[1 channel]") { prove(1); }
TEST_CASE("every schedule is proven on 2 channels", "[2 channels]") { prove(2); }
TEST_CASE("every schedule is proven on 3 channels", "[3 channels]") { prove(3); }
TEST_CASE("every schedule is proven on 4 channels", "[4 channels]") { prove(4); }

TEST_CASE("a thousand ranks are proven in under five seconds, by families whose schedules grow little faster than that", "[1024 ranks]") {
  double longest = 0;
  std::string slowest;
  for (const std::string_view name : {"halving_doubling", "tree", "double_tree", "pat"}) {
    for (const Collective collective : all_collectives()) {
      const Shape shape{collective, test::sanitized ? 128 : 1024, 1, 0, {}};
      if (!refusal(*family_named(name), shape).empty()) continue;
      INFO(name << ": " << text(shape));
      const schedule::Schedule fused = schedule::fuse(*make(name, shape), true);
      const std::clock_t begin = std::clock();
      Verifier verifier(fused);
      CHECK(flaw(verifier, fused, all_modes, 2) == "");
      const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      if (test::full_speed) CHECK(seconds < 5);
      if (seconds > longest) longest = seconds, slowest = std::string(name) + ": " + text(shape);
    }
  }
  WARN(slowest << " takes longest, " << longest << " s in all modes, in and out of place");
}
