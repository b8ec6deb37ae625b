#include "perf/section.h"

#include "test/catch.h"
#include "test/perf/written.h"

using namespace gyre;
using namespace gyre::perf;
using gyre::test::sample;
using gyre::test::sweep_head;
using gyre::test::sweep_row;
using gyre::test::Written;

namespace {

std::vector<Section> drawn(const std::vector<std::string>& texts) {
  std::vector<Results> all;
  for (size_t i = 0; i < texts.size(); ++i) {
    const Written file(texts[i], fmt::format("file{}.json", i));
    all.push_back(*read_results(file.path()));
  }
  const auto sections = sections_of(all, *topo::default_constants());
  REQUIRE(sections);
  return *sections;
}

std::vector<std::string> labels(const Section& section) {
  std::vector<std::string> all;
  for (const Series& s : section.series) all.push_back(s.label);
  return all;
}
using Labels = std::vector<std::string>;

bool says(const Section& section, const std::string& part) {
  return std::any_of(section.sentences.begin(), section.sentences.end(),
                     [&](const std::string& s) { return s.find(part) != std::string::npos; });
}

const std::string fixed = sweep_head(R"("algorithm":"tree")");

}  // namespace

TEST_CASE("a sweep has a series for each algorithm that ran, and what ran is what was chosen") {
  const auto sections = drawn({sweep_head() + sweep_row(8, 2, "one_shot") + sweep_row(16, 3, "ring") + sweep_row(32, 4, "one_shot")});
  REQUIRE(sections.size() == 1);
  const Section& section = sections[0];
  CHECK(section.title == "All-reduce of float, sum: 4 ranks on 2 processors over shm");
  const auto elsewhere = drawn({sweep_head(R"("machine":{"processors":4})") + sweep_row(8, 2)});
  CHECK(elsewhere[0].title == "All-reduce of float, sum: 4 ranks over shm");
  CHECK(section.bus_factor == 1.5);
  CHECK(labels(section) == Labels{"one_shot", "ring"});
  // 8 and 32 are no neighbours: the line between them would pass over what ran at 16.
  CHECK((section.series[0].marks[0].place == 0 && section.series[0].marks[1].place == 2));
  REQUIRE(section.chosen.size() == 3);
  const Chosen& c = section.chosen[1];
  CHECK((c.algorithm == "ring" && c.mark.us == 3 && c.in_place_us == 6 && c.predicted_us == 3));
  CHECK((section.series_are_of_chosen && !section.chosen_apart && section.sizes() == std::vector<size_t>{8, 16, 32}));
  CHECK(says(section, "off by 25 % at the median"));
}

TEST_CASE("beside sweeps of one algorithm each the choice stands apart") {
  const auto sections = drawn({sweep_head() + sweep_row(8, 2, "ring"), fixed + sweep_row(8, 3, "tree"), fixed + sweep_row(8, 4, "tree")});
  REQUIRE(sections.size() == 1);
  REQUIRE(sections[0].series.size() == 2);
  CHECK((sections[0].chosen.size() == 1 && sections[0].chosen_apart && sections[0].chosen[0].algorithm == "ring"));
  CHECK(says(sections[0], "What gyre chooses was measured by itself"));
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const std::string& label = sections[0].series[i].label;
    CHECK((label.starts_with("tree (") && label.ends_with(i == 0 ? "file1)" : "file2)")));
  }
}

TEST_CASE("two sweeps with the choice are two lines, before and after") {
  const auto sections = drawn({sweep_head() + sweep_row(8, 2, "ring"), sweep_head() + sweep_row(8, 3, "tree")});
  REQUIRE(sections[0].series.size() == 2);
  CHECK(sections[0].chosen.empty());
  CHECK((sections[0].series[0].algorithm.empty() && sections[0].series[0].label.ends_with("file0")));
}

TEST_CASE("samples of several nodes are other calls than those of one, by the price of the link between") {
  std::string between = sample(8, 5, "hierarchical") + sample(8, 9, "ring");
  for (size_t at = 0; (at = between.find(R"("processors":2)", at)) != std::string::npos; ++at)
    between.replace(at, 14, R"("processors":1,"nodes":2,"network":"tcp")");
  between.replace(between.find(R"("grid":[])"), 9, R"("grid":[2,2])");  // of the first
  const auto sections = drawn({sample(8, 1, "ring") + between});
  REQUIRE(sections.size() == 2);
  CHECK(sections[0].title == "All-reduce of float, sum: 4 ranks on 2 processors over shm");
  CHECK(sections[1].title == "All-reduce of float, sum: 4 ranks on 1 processors of each node over shm, between 2 nodes over tcp");
  CHECK(labels(sections[1]) == Labels{"hierarchical 2x2", "ring"});
}

TEST_CASE("of samples the constants say what would be chosen, and how near that is to the best") {
  // By price a ring of four ranks is never chosen for 8 bytes.
  const auto sections = drawn({sample(8, 1, "ring") + sample(8, 3, "one_shot") + sample(8, 9, "naive")});
  REQUIRE(sections.size() == 1);
  const Section& section = sections[0];
  CHECK(section.title == "All-reduce of float, sum: 4 ranks on 2 processors over shm");
  CHECK(labels(section) == Labels{"ring", "one_shot", "naive"});  // the fastest first
  REQUIRE(section.chosen.size() == 1);
  CHECK((section.chosen[0].algorithm == "one_shot" && section.chosen[0].mark.us == 3 && section.chosen[0].predicted_us > 0));
  CHECK(says(section, "the fastest measured at 0 of 1 sizes; at worst it takes 3.00 times the fastest, at 8 B"));
  CHECK(says(section, "Lines join medians"));
  CHECK((section.series[1].marks[0].least_us == 3 && section.series[1].marks[0].most_us == 6));
}

TEST_CASE("unlike calls have sections of their own") {
  const auto sections = drawn({sweep_head() + sweep_row(8, 2), sweep_head("\"x\":1", 2) + sweep_row(8, 2),
                               sweep_head("\"x\":1", 4, "all_gather") + sweep_row(8, 2)});
  REQUIRE(sections.size() == 3);
  CHECK(sections[1].title == "All-reduce of float, sum: 2 ranks over shm");
  CHECK(sections[2].bus_factor == 0.75);
}

TEST_CASE("where nothing has a size there is nothing to draw") {
  const Written file(sweep_head() + sweep_row(0, 2));
  const std::vector<Results> results{*read_results(file.path())};
  const auto sections = sections_of(results, *topo::default_constants());
  REQUIRE_FALSE(sections);
  CHECK(sections.error().what == "there is nothing to draw: no size is above 0 bytes");
  CHECK(says(drawn({sweep_head() + sweep_row(0, 2) + sweep_row(8, 2)})[0], "0 bytes have no place"));
}

TEST_CASE("sizes are said in the unit that leaves few digits") {
  CHECK(size_text(0) == "0 B");
  CHECK(size_text(1000) == "1000 B");
  CHECK(size_text(1536) == "1.5 KiB");
  CHECK(size_text(64 << 20) == "64 MiB");
  CHECK(size_text(size_t{1} << 50) == "1024 TiB");
}
