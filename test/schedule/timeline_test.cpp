#include "schedule/timeline.h"

#include <regex>
#include <set>

#include "schedule/svg.h"
#include "schedule/time_axis.h"
#include "test/catch.h"
#include "test/golden.h"
#include "test/schedule/machines.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::schedule;
using test::made;
using test::occurrences;

namespace {

struct Drawn {
  Schedule schedule;
  Simulation simulation;
  std::string text;
};

Drawn draw(const Schedule& schedule, int nodes = 1) {
  const LinkClass local{"local", 1e-6, 5e-11, 2e-7, false, {}};
  const LinkClass wire{"network", 4e-6, 1e-10, 2e-7, false, {}};
  const Network network = test::machine(topo::clusters(nodes, schedule.ranks / nodes, local, wire, {2.5e-11, 2.5e-11, 2e-7}));
  Simulation simulation = test::played(schedule, network, test::sliced(1e6));
  std::string text = timeline(schedule, network, simulation, {"a <title> & more", "of \"this\" machine"});
  return {schedule, std::move(simulation), std::move(text)};
}

// What is wrong with it as XML: elements that do not close in order, or a character that must be written otherwise.
std::string ill_formed(const std::string& text) {
  std::vector<std::string> open;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '<') {
      if (text[at] == '>' || (text[at] == '&' && !std::regex_search(text.substr(at, 6), std::regex("^&(lt|gt|amp|quot);")))) {
        return "a bare " + text.substr(at, 20);
      }
      ++at;
      continue;
    }
    const size_t end = text.find('>', at);
    if (end == std::string::npos) return "an element without end";
    const std::string element = text.substr(at + 1, end - at - 1);
    const std::string name = element.substr(0, element.find_first_of(" /", 1));
    if (std::count(element.begin(), element.end(), '"') % 2 != 0) return "an open quotation in " + element;
    if (element[0] == '/') {
      if (open.empty() || "/" + open.back() != element) return "closes " + element;
      open.pop_back();
    } else if (element.back() != '/') {
      open.push_back(name);
    }
    at = end + 1;
  }
  return open.empty() ? "" : "leaves open " + open.back();
}

// Attribute `name` of all elements that match.
std::vector<double> numbers(const std::string& text, const std::string& element, const std::string& name) {
  std::vector<double> out;
  const std::regex wanted("<" + element + "[^>]* " + name + "=\"([-0-9.]+)\"");
  for (std::sregex_iterator i(text.begin(), text.end(), wanted), end; i != end; ++i) out.push_back(std::stod((*i)[1]));
  return out;
}

}  // namespace

TEST_CASE("the timeline of the ring of three ranks is as drawn") {
  CHECK(test::golden_difference("ring_3.svg", draw(made("ring", 3)).text) == "");
}
TEST_CASE("the timeline of the tree of four ranks is as drawn") {
  CHECK(test::golden_difference("tree_4.svg", draw(made("tree", 4)).text) == "");
}

TEST_CASE("a timeline is well-formed, and has every step and every message") {
  for (const topo::Family& family : topo::families()) {
    for (const Collective collective : all_collectives()) {
      const topo::Shape shape{collective, 6, 2, 0, {3, 2}};
      if (!topo::refusal(family, shape).empty()) continue;
      CAPTURE(family.name, name(collective));
      const Drawn drawn = draw(made(family.name, shape), 2);
      CHECK(ill_formed(drawn.text) == "");
      CHECK(occurrences(drawn.text, ", step ") == drawn.simulation.steps.size());
      CHECK(occurrences(drawn.text, " bytes to rank ") == drawn.simulation.messages.size());
      CHECK(occurrences(drawn.text, " marker-end=") == drawn.simulation.messages.size());
      for (Rank r = 0; r < 6; ++r) CHECK(occurrences(drawn.text, ">rank " + std::to_string(r) + "</text>") == 1);
    }
  }
}

TEST_CASE("nothing is drawn outside of the picture, and boxes of a strand do not hide each other") {
  for (const int ranks : {1, 2, 4, 16}) {
    CAPTURE(ranks);
    const Drawn drawn = draw(made("ring", ranks));
    const double width = numbers(drawn.text, "svg", "width").at(0);
    const double height = numbers(drawn.text, "svg", "height").at(0);
    for (const auto* name : {"x", "x1", "x2"}) {
      for (const double x : numbers(drawn.text, "(?:rect|line|text)", name)) CHECK((x >= 0 && x <= width));
    }
    for (const auto* name : {"y", "y1", "y2"}) {
      for (const double y : numbers(drawn.text, "(?:rect|line|text)", name)) CHECK((y >= 0 && y <= height));
    }
    const std::regex box("<rect x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\" [^>]*><title>[^<]*, step ");
    std::map<std::string, std::map<double, double>> rows;  // from left to right
    for (std::sregex_iterator i(drawn.text.begin(), drawn.text.end(), box), end; i != end; ++i) {
      const double x = std::stod((*i)[1]);
      rows[(*i)[2]][x] = x + std::stod((*i)[3]);
    }
    for (const auto& [y, boxes] : rows) {
      double last = 0;
      for (const auto& [x, right] : boxes) {
        CHECK(x >= last - 0.2);  // the coordinates are rounded
        last = right;
      }
    }
  }
}

TEST_CASE("text is escaped") {
  CHECK(svg::escaped("rrs <0 >1 & \"x\"") == "rrs &lt;0 &gt;1 &amp; &quot;x&quot;");
  const std::string text = draw(made("ring", 2)).text;
  CHECK(text.find(">a &lt;title&gt; &amp; more</text>") != std::string::npos);
  CHECK(text.find(">of &quot;this&quot; machine</text>") != std::string::npos);
}

TEST_CASE("only what the finish waited for is outlined") {
  const Drawn drawn = draw(made("ring", 4));
  size_t steps = 0;
  for (const Stretch& stretch : drawn.simulation.path) steps += stretch.kind == Stretch::Kind::step ? 1 : 0;
  CHECK(steps == 7);
  CHECK(occurrences(drawn.text, "stroke=\"#111820\" stroke-width=\"") == steps + 6 + 1);  // its messages, and the legend
}

TEST_CASE("times are told with three digits") {
  CHECK(time_text(0) == "0.00 ns");
  CHECK(time_text(1.234e-9) == "1.23 ns");
  CHECK(time_text(12.34e-6) == "12.3 µs");
  CHECK(time_text(0.2346) == "235 ms");
  CHECK(time_text(75) == "75.0 s");
}

TEST_CASE("an axis has round marks from nothing to the end") {
  CHECK(marks(0, 10) == std::vector<double>{0});
  CHECK(marks(100, 10).size() == 11);
  CHECK(marks(100, 10).back() == 100);
  for (const double finish : {1e-7, 3.3e-5, 0.128, 7.0, 99.0}) {
    CAPTURE(finish);
    const auto at = marks(finish, 10);
    CHECK(at.size() >= 4);
    CHECK(at.size() <= 11);
    CHECK(at.back() <= finish * (1 + 1e-9));
    CHECK(at.back() + at[1] > finish);
  }
}
