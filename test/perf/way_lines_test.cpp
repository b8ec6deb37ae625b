#include <regex>
#include <vector>

#include "perf/topology_svg.h"
#include "test/catch.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::topo;

namespace {

struct GrownMachine {
  Topology topology;
  uint8_t bus = 0;

  int add(int parent, decltype(Part::is) is) {
    Pci place;
    place.address = {0, ++bus, 0, 0};
    topology.parts.push_back({parent, parent < 0 ? std::nullopt : std::optional(place), std::move(is)});
    return static_cast<int>(topology.parts.size()) - 1;
  }
  void add_gpus(int parent, int count) {
    for (int i = 0; i < count; ++i) add(parent, Gpu{bus, 90, {}, 0, 0});
  }
  void add_nics(int parent, int count) {
    for (int i = 0; i < count; ++i) add(parent, Nic{{{"mlx5_" + std::to_string(bus), 1, 400, bus, true, true}}});
  }
};

struct Drawn {
  std::vector<std::vector<double>> boxes;  // of GPUs and NICs: left, top, right, bottom
  std::vector<std::vector<double>> lines;  // x, y, x, y, …
};

std::vector<double> read_numbers(const std::string& words) {
  const std::regex number("[0-9.]+");
  std::vector<double> found;
  for (std::sregex_iterator at(words.begin(), words.end(), number), end; at != end; ++at) found.push_back(std::stod(at->str()));
  return found;
}

Drawn drawn_of(const Topology& topology) {
  const std::string svg = perf::topology_svg(topology, "some");
  const std::regex box(R"re(<rect x="(.*)" y="(.*)" width="(.*)" height="(.*)" rx="5" fill="#(e3f1dc|dde8f6)")re");
  const std::regex line(R"re(<polyline points="([^"]*)")re");
  Drawn drawn;
  for (std::sregex_iterator at(svg.begin(), svg.end(), box), end; at != end; ++at) {
    const double x = std::stod((*at)[1]), y = std::stod((*at)[2]);
    drawn.boxes.push_back({x, y, x + std::stod((*at)[3]), y + std::stod((*at)[4])});
  }
  for (std::sregex_iterator at(svg.begin(), svg.end(), line), end; at != end; ++at) drawn.lines.push_back(read_numbers((*at)[1]));
  return drawn;
}

// Of a line's pieces, those that are neither level nor upright, and those that lie in a box: the edge belongs to it no more.
int wrong_pieces(const Drawn& drawn) {
  int wrong = 0;
  for (const std::vector<double>& line : drawn.lines) {
    for (size_t i = 0; i + 3 < line.size(); i += 2) {
      const auto [left, right] = std::minmax(line[i], line[i + 2]);
      const auto [top, bottom] = std::minmax(line[i + 1], line[i + 3]);
      if (left != right && top != bottom) ++wrong;
      for (const std::vector<double>& box : drawn.boxes) {
        if (left < box[2] - 0.2 && right > box[0] + 0.2 && top < box[3] - 0.2 && bottom > box[1] + 0.2) ++wrong;
      }
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("lines from GPUs to their NICs pass no box, wherever both are") {
  GrownMachine beside, below, across;
  beside.add(-1, Numa{});
  beside.add_gpus(0, 5);
  beside.add_nics(0, 2);
  below.add(-1, Numa{});
  const int outer = below.add(0, Switch{}), inner = below.add(outer, Switch{});
  below.add_gpus(inner, 2);
  below.add_nics(outer, 2);
  below.add_gpus(below.add(0, Switch{}), 3);
  across.add(-1, Numa{});
  across.add_gpus(0, 1);
  across.add_nics(0, 3);
  const int second = across.add(-1, Numa{});
  across.add_gpus(second, 2);
  across.add_gpus(across.add(second, Switch{}), 3);
  for (const GrownMachine* machine : {&beside, &below, &across}) {
    const Drawn drawn = drawn_of(machine->topology);
    CHECK(drawn.boxes.size() == machine->topology.all<Gpu>().size() + machine->topology.all<Nic>().size());
    CHECK(drawn.lines.size() == machine->topology.all<Gpu>().size());
    CHECK(wrong_pieces(drawn) == 0);
  }
}

TEST_CASE("lines to different NICs share no lane") {
  GrownMachine machine;
  machine.add(-1, Numa{});
  machine.add_gpus(0, 2);
  machine.add_nics(0, 2);
  const Drawn drawn = drawn_of(machine.topology);
  REQUIRE(drawn.lines.size() == 2);
  CHECK(drawn.lines[0][3] != drawn.lines[1][3]);  // the lane's height
}
