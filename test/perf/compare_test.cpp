#include "perf/compare.h"

#include <array>
#include <cmath>

#include "test/catch.h"
#include "test/perf/written.h"

using namespace gyre;
using namespace gyre::perf;
using gyre::test::sample;
using gyre::test::sweep_head;
using gyre::test::sweep_row;
using gyre::test::Written;

namespace {

Result<Comparison> compared(const std::string& a, const std::string& b) {
  const Written before(a, "a");
  const Written after(b, "b");
  return compare(*read_results(before.path()), *read_results(after.path()));
}

std::string wrong(const std::string& a, const std::string& b) {
  const auto result = compared(a, b);
  return result ? "" : result.error().what;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("points of the same call are paired, the others counted") {
  const auto c =
      compared(sweep_head() + sweep_row(8, 6) + sweep_row(16, 3), sweep_head() + sweep_row(16, 6) + sweep_row(32, 1) + sweep_row(64, 1));
  REQUIRE(c);
  REQUIRE(c->pairs.size() == 2);
  for (const Paired& pair : c->pairs) CHECK((pair.ratio == 0.5 && !pair.repeated && pair.beyond_spread() == 0));
  CHECK((c->only_before == 2 && c->only_after == 4 && c->differences.empty()));
}

TEST_CASE("a ratio is of medians, and its spread of single measurements") {
  const std::string thrice = sweep_row(8, 10) + sweep_row(8, 12) + sweep_row(8, 30);
  const auto c = compared(sweep_head() + thrice, sweep_head() + sweep_row(8, 6) + sweep_row(8, 4));
  REQUIRE(c);
  const Paired& pair = c->pairs[0];
  CHECK((pair.before_us == 12 && pair.after_us == 5 && pair.ratio == 12.0 / 5));
  CHECK((pair.repeated && pair.least == 10.0 / 6 && pair.most == 30.0 / 4 && pair.beyond_spread() == 1));
  const auto slower = compared(sweep_head() + sweep_row(8, 1), sweep_head() + sweep_row(8, 2) + sweep_row(8, 3));
  REQUIRE(slower);
  CHECK(slower->pairs[0].beyond_spread() == -1);
  const auto neither = compared(sweep_head() + sweep_row(8, 2), sweep_head() + sweep_row(8, 1) + sweep_row(8, 3));
  REQUIRE(neither);
  CHECK(neither->pairs[0].beyond_spread() == 0);
}

TEST_CASE("a call that a sweep ran by two algorithms is one point, of samples each is its own") {
  const auto sweeps = compared(sweep_head() + sweep_row(8, 2, "ring") + sweep_row(8, 4, "tree"), sweep_head() + sweep_row(8, 3, "naive"));
  REQUIRE(sweeps);
  CHECK((sweeps->pairs.size() == 2 && sweeps->pairs[0].before_us == 3 && sweeps->pairs[0].ratio == 1 && sweeps->only_before == 0));
  const auto samples = compared(sample(8, 2, "ring") + sample(8, 4, "tree"), sample(8, 4, "tree") + sample(8, 1, "naive"));
  REQUIRE(samples);
  CHECK((samples->pairs.size() == 1 && samples->pairs[0].ratio == 1 && samples->only_before == 1 && samples->only_after == 1));
}

TEST_CASE("what can't be compared is refused, with what they differ in") {
  const std::string row = sweep_row(8, 1);
  CHECK(contains(wrong(sweep_head() + row, sweep_head("\"x\":1", 4, "reduce") + row), "differ in collective: all_reduce and reduce"));
  CHECK(contains(wrong(sweep_head("\"x\":1", 2) + row, sweep_head("\"x\":1", 8) + row), "differ in ranks: 2 and 8"));
  CHECK(contains(wrong(sweep_head() + row, sample(8, 1, "ring")), "differ in kind: a sweep and samples of every algorithm"));
  CHECK(contains(wrong(sweep_head() + row, sweep_head() + sweep_row(16, 1)), "no size, type, operation and root is in both"));
  const std::string blocking =
      wrong(sweep_head(R"("options":{"blocking":0,"average":1})") + row, sweep_head(R"("options":{"blocking":1,"average":3})") + row);
  CHECK((contains(blocking, "blocking: 0 and 1") && contains(blocking, "average: 1 and 3")));
  CHECK(wrong(sweep_head(R"("options":{"blocking":1})") + row, sweep_head() + row).empty());  // an older file does not say
}

TEST_CASE("what may differ is listed") {
  const std::string row = sweep_row(8, 1);
  const auto c = compared(sweep_head(R"("algorithm":"ring","options":{"unalign":0})") + row,
                          sweep_head(R"("algorithm":"auto","options":{"unalign":3})") + row);
  REQUIRE(c);
  CHECK(c->differences == std::vector<std::string>{"algorithm: ring and auto", "options.unalign: 0 and 3"});
}

TEST_CASE("an option that was set for one alone is listed, what an older file does not say is not") {
  const std::string row = sweep_row(8, 1);
  const std::string older = R"("machine":{"kernel":"6.1"})";
  const auto a =
      R"("machine":{"kernel":"6.1","host":"a"},"versions":{"libc":"2.36","ucx":null},"config":{"GYRE_SLOTS":4,"GYRE_WAIT":"spin"})";
  const auto b =
      R"("machine":{"kernel":"6.2","host":"b"},"versions":{"libc":"2.36","ucx":"1.13.1"},"config":{"GYRE_ATTACH":0,"GYRE_SLOTS":8})";
  const auto c = compared(sweep_head(a) + row, sweep_head(b) + row);
  REQUIRE(c);
  CHECK(c->differences == std::vector<std::string>{"machine.host: a and b", "machine.kernel: 6.1 and 6.2", "versions.ucx: none and 1.13.1",
                                                   "config.GYRE_ATTACH: none and 0", "config.GYRE_SLOTS: 4 and 8",
                                                   "config.GYRE_WAIT: spin and none"});
  for (const bool first : {true, false}) {
    const std::string said = sweep_head(a) + row, unsaid = sweep_head(older) + row;
    CHECK(compared(first ? said : unsaid, first ? unsaid : said)->differences.empty());
  }
}

TEST_CASE("where buffers lie is a setting, of which older files do not speak because it was one") {
  const auto differences = [row = sweep_row(8, 1)](const std::string& a, const std::string& b) {
    return compared(sweep_head(a) + row, sweep_head(b) + row)->differences;
  };
  const std::string old = R"("options":{"unalign":0})";
  const std::string ordinary = R"("options":{"unalign":0,"local_register":0})";
  const std::string heap = R"("options":{"unalign":0,"local_register":1})";
  CHECK(differences(ordinary, heap) == std::vector<std::string>{"options.local_register: 0 and 1"});
  CHECK(differences(old, heap) == std::vector<std::string>{"options.local_register: 0 and 1"});
  CHECK(differences(heap, old) == std::vector<std::string>{"options.local_register: 1 and 0"});
  CHECK(differences(old, ordinary).empty());
}

TEST_CASE("the geometric mean of a ratio and its inverse is 1") {
  const std::array values{4.0, 0.25, 3.0, 1 / 3.0};
  CHECK(std::abs(geometric_mean(values) - 1) < 1e-12);
  CHECK(std::abs(geometric_mean(std::array{2.0, 8.0}) - 4) < 1e-12);
}
