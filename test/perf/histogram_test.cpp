#include "perf/histogram.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "test/catch.h"

using namespace gyre::perf;

namespace {

// By definition: the smallest value that so many percent do not exceed.
double exact(std::vector<uint64_t> values, double percent) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(std::ceil(static_cast<double>(values.size()) * percent / 100));
  return static_cast<double>(values[std::max<size_t>(rank, 1) - 1]);
}

}  // namespace

TEST_CASE("small times are counted exactly") {
  Histogram h;
  for (uint64_t ns = 1; ns <= 100; ++ns) h.add(ns);
  CHECK(h.count() == 100);
  CHECK(h.percentile(50) == 50);
  CHECK(h.percentile(99) == 99);
  CHECK(h.percentile(0) == 1);
  CHECK(h.percentile(100) == 100);
}

TEST_CASE("percentiles of any times are within 0.4 % of the exact ones") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (const double widest : {8.0, 20.0, 40.0, 63.9}) {
    std::uniform_real_distribution<double> power(0, widest);
    Histogram h;
    std::vector<uint64_t> values;
    for (int i = 0; i < 5000; ++i) {
      values.push_back(static_cast<uint64_t>(std::exp2(power(random))));
      h.add(values.back());
    }
    for (const double percent : {0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
      const double right = exact(values, percent);
      INFO(widest << " bits, " << percent << " %");
      CHECK(std::fabs(h.percentile(percent) - right) <= right / 256 + 1e-9);
    }
  }
}

TEST_CASE("the least and the most are exact, and bound every percentile") {
  Histogram h;
  h.add(1000001);
  CHECK(h.percentile(50) == 1000001);
  h.add(UINT64_MAX);
  CHECK(h.percentiles(1).max_us == static_cast<double>(UINT64_MAX) / 1e3);
  CHECK(h.percentiles(1).min_us == 1000.001);
}

TEST_CASE("times are of one call of an iteration") {
  Histogram h;
  h.add(8000);
  const Percentiles p = h.percentiles(4);
  CHECK((p.min_us == 2 && p.p50_us == 2 && p.p90_us == 2 && p.p99_us == 2 && p.max_us == 2 && p.iterations == 1));
}

TEST_CASE("merged histograms are those of all times, also as text") {
  Histogram odd;
  Histogram even;
  Histogram all;
  for (uint64_t ns = 1; ns < 1000000; ns = ns * 5 / 4 + 1) {
    (ns % 2 != 0 ? odd : even).add(ns);
    all.add(ns);
  }
  const auto read = Histogram::parse(even.text());
  REQUIRE(read);
  odd.merge(*read);
  CHECK(odd.text() == all.text());
  CHECK(odd.count() == all.count());
  const auto none = Histogram::parse(Histogram().text());
  REQUIRE(none);
  CHECK((none->count() == 0 && none->percentile(50) == 0));
}

TEST_CASE("text that is no histogram is refused") {
  for (const char* text : {"", "1", "1 2 3", "a b", "1 2 99999 1", "1 2 ", "1 2 3 -4"}) {
    INFO(text);
    CHECK_FALSE(Histogram::parse(text));
  }
}
