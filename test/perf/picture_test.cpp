#include "perf/picture.h"

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include "perf/chart.h"
#include "perf/page.h"
#include "test/catch.h"
#include "test/perf/written.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::perf;

namespace {

// As wide as reports get: every family, sizes over seven decades, names that need escaping.
Section section() {
  Section s;
  s.title = "All-reduce of <float> & sum";
  s.sentences = {"One.", "Two."};
  s.bus_factor = 1.5;
  for (const topo::Family& family : topo::families()) {
    Series series{std::string(family.name), std::string(family.name), {}};
    for (size_t i = 0; i < 24; ++i) {
      const double us = 3 + static_cast<double>(s.series.size()) + std::exp2(static_cast<double>(i)) / 5e3;
      series.marks.push_back({size_t{8} << i, us, us * 0.9, us * 1.2, i});
    }
    s.series.push_back(series);
  }
  for (const Mark& m : s.series[2].marks) s.chosen.push_back({m, "tree", m.us * 2, m.us * 1.1});
  s.sources = {"/tmp/<a>: gyre"};
  return s;
}

struct Text {
  double x, y, width;
  std::string words;
};
// Where a picture's words are, with a width that no usual font exceeds.
std::vector<Text> texts(const std::string& svg) {
  static const std::regex element("<text x=\"([0-9.-]+)\" y=\"([0-9.-]+)\"([^>]*)>([^<]*)</text>");
  std::vector<Text> all;
  for (std::sregex_iterator at(svg.begin(), svg.end(), element), end; at != end; ++at) {
    const std::string style = (*at)[3];
    const double size = style.find("\"17\"") != std::string::npos ? 17 : style.find("\"14\"") != std::string::npos ? 14 : 12;
    Text text{std::stod((*at)[1]), std::stod((*at)[2]), 0.65 * size * static_cast<double>((*at)[4].length()), (*at)[4]};
    if (style.find("middle") != std::string::npos) text.x -= text.width / 2;
    if (style.find("\"end\"") != std::string::npos) text.x -= text.width;
    all.push_back(text);
  }
  return all;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("no two texts of a picture overlap, and none leaves it") {
  for (const size_t first : {size_t{1}, size_t{8}, size_t{1000}, size_t{1} << 30}) {
    Section s = section();
    for (Series& series : s.series) {
      for (Mark& m : series.marks) m.bytes = m.bytes / 8 * first;
    }
    for (Chosen& c : s.chosen) c.mark.bytes = c.mark.bytes / 8 * first;
    const auto all = texts(picture_of(s, true));
    CHECK(all.size() > 30);
    for (size_t i = 0; i < all.size(); ++i) {
      INFO(all[i].words);
      CHECK((all[i].x >= 0 && all[i].x + all[i].width <= 1240));
      for (size_t j = 0; j < i; ++j) {
        INFO(all[j].words);
        const bool beside = all[i].x >= all[j].x + all[j].width || all[j].x >= all[i].x + all[i].width;
        CHECK((beside || std::abs(all[i].y - all[j].y) >= 12));
      }
    }
  }
}

TEST_CASE("every mark is drawn in both panels, the chosen ones with a ring, the prediction dotted") {
  const Section s = section();
  const std::string svg = picture_of(s, false);
  CHECK(count(svg, "</title></g>") == 2 * 24 * s.series.size());
  CHECK(count(svg, "r=\"6.8\"") == 2 * 24 + 1);  // and in the legend
  CHECK(count(svg, "stroke-dasharray") == 2 + 1);
  CHECK(count(svg, "<svg") == 1);
  CHECK(svg.find("NaN") == std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
}

TEST_CASE("marks stay within their panels") {
  static const std::regex circle("cy=\"([0-9.-]+)\" r=\"6.8\"");
  const std::string svg = picture_of(section(), false);
  for (std::sregex_iterator at(svg.begin(), svg.end(), circle), end; at != end; ++at) {
    const double y = std::stod((*at)[1]);
    CHECK((y >= 34 && y <= 34 + 380));
  }
}

TEST_CASE("a round that was disturbed leaves the frame, and no mark changes its place") {
  Section s = section();
  const std::string calm = picture_of(s, false);
  s.series[3].marks[4].most_us *= 1e5;
  s.series[3].marks[5].least_us /= 1e5;
  const std::string disturbed = picture_of(s, false);
  static const std::regex bar("<line [^>]*y1=\"([0-9.-]+)\"[^>]*y2=\"([0-9.-]+)\"[^>]*stroke-opacity");
  size_t at_frame = 0;
  for (std::sregex_iterator at(disturbed.begin(), disturbed.end(), bar), end; at != end; ++at) {
    for (const double y : {std::stod((*at)[1]), std::stod((*at)[2])}) {
      CHECK((y >= 34 && y <= 34 + 380));
      at_frame += y == 34 || y == 34 + 380 ? 1 : 0;
    }
  }
  CHECK(at_frame == 2 * 2);
  CHECK(std::regex_replace(calm, bar, "") == std::regex_replace(disturbed, bar, ""));
}

TEST_CASE("no two families look the same") {
  std::set<std::pair<std::string_view, int>> looks;
  std::set<std::string_view> colours;
  for (const topo::Family& family : topo::families()) {
    const Look look = look_of(family.name, 0);
    looks.insert({look.colour, look.shape});
    colours.insert(look.colour);
  }
  CHECK(looks.size() == topo::families().size());
  CHECK(colours.size() == topo::families().size());
}

TEST_CASE("a page is one file, with every size in its table, and escapes what it is given") {
  const Section s = section();
  const std::string page = page_of(std::vector{s, s});
  CHECK(count(page, "<svg") == 2);
  CHECK(count(page, "<tr>") == 2 * 25);
  for (const char* elsewhere : {"<script", "src=", "href=", "@import", "url("}) CHECK(page.find(elsewhere) == std::string::npos);
  CHECK(page.find("<float>") == std::string::npos);
  CHECK(page.find("/tmp/&lt;a&gt;: gyre") != std::string::npos);
  CHECK(count(page, "class=\"fastest chosen\"") + count(page, "class=\"chosen\"") == 2 * 24);
  Section alone = s;
  alone.chosen.clear();
  CHECK(page_of(std::vector{alone}).find("predicted") == std::string::npos);
}

TEST_CASE("axes have round labels, and not too many") {
  const auto labelled = [](const std::vector<Tick>& ticks) {
    std::vector<std::string> all;
    for (const Tick& t : ticks) {
      if (!t.label.empty()) all.push_back(t.label);
    }
    return all;
  };
  using Labels = std::vector<std::string>;
  CHECK(labelled(size_ticks(8, 64 << 20, 7)) == Labels{"8 B", "128 B", "2 KiB", "32 KiB", "512 KiB", "8 MiB"});
  CHECK(labelled(size_ticks(6, 100, 7)) == Labels{"8 B", "16 B", "32 B", "64 B"});
  CHECK(labelled(value_ticks(0.9, 12, time_label)) == Labels{"1 µs", "2 µs", "5 µs", "10 µs"});
  CHECK(labelled(value_ticks(0.05, 2e6, time_label)) == Labels{"0.1 µs", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"});
  CHECK(bandwidth_label(0.01) == "10 MB/s");
  CHECK(bandwidth_label(1000) == "1 TB/s");
  CHECK(bandwidth_label(1e-6) == "1 kB/s");
}

TEST_CASE("a logarithmic axis has equal distances for equal ratios") {
  const LogAxis axis{1, 1000, 100, 400};
  CHECK(std::abs(axis.at(1) - 100) < 1e-9);
  CHECK(std::abs(axis.at(10) - 200) < 1e-9);
  CHECK(std::abs(axis.at(1000) - 400) < 1e-9);
}
