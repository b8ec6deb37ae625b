#include "perf/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "perf/section.h"
#include "topo/algorithms.h"

namespace gyre::perf {
namespace {

namespace svg = schedule::svg;

// By the order of families(), so that those that run between the ranks of a host, and stand in one picture, differ most: Okabe and Ito's
// colours for any colour vision (jfly.uni-koeln.de/color) but yellow, which is the highlighter's, and dark ones of Tol's
// (personal.sron.nl/~pault).
constexpr std::array<std::string_view, 12> colours{"#4A4A4A", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9",
                                                   "#8C510A", "#999933", "#D55E00", "#332288", "#882255", "#117733"};
constexpr int outlines = 5;                  // circle, square, triangle, diamond, triangle upside down
static_assert(look_shapes == 2 * outlines);  // filled, hollow

std::string colours_of(const Look& look) {
  return look.shape < outlines ? fmt::format(" fill=\"{}\" stroke=\"#fff\" stroke-width=\"0.8\"", look.colour)
                               : fmt::format(" fill=\"#fff\" stroke=\"{}\" stroke-width=\"1.5\"", look.colour);
}

std::string polygon(const std::vector<std::pair<double, double>>& corners, const Look& look) {
  std::string points;
  for (const auto& [x, y] : corners) points += fmt::format("{:.1f},{:.1f} ", x, y);
  points.pop_back();
  return fmt::format("<polygon points=\"{}\"{}/>\n", points, colours_of(look));
}

}  // namespace

double LogAxis::at(double value) const { return from + (to - from) * std::log(value / least) / std::log(most / least); }

std::vector<Tick> size_ticks(double least, double most, int most_labels) {
  const int first = static_cast<int>(std::ceil(std::log2(least) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log2(most) + 1e-9));
  const int step = std::max(1, static_cast<int>(std::ceil(static_cast<double>(last - first + 1) / most_labels)));
  std::vector<Tick> ticks;
  for (int power = first; power <= last; ++power) {
    ticks.push_back({std::exp2(power), (power - first) % step == 0 ? size_text(size_t{1} << power) : ""});
  }
  return ticks;
}

std::vector<Tick> value_ticks(double least, double most, std::string (*text)(double)) {
  const double decades = std::log10(most / least);
  std::vector<Tick> ticks;
  for (int power = static_cast<int>(std::floor(std::log10(least))); std::pow(10, power) <= most; ++power) {
    for (const int digit : {1, 2, 5}) {
      const double value = digit * std::pow(10, power);
      if (value < least * (1 - 1e-9) || value > most * (1 + 1e-9)) continue;
      const bool labelled = decades <= 2.5 || digit == 1;
      ticks.push_back({value, labelled ? text(value) : ""});
    }
  }
  return ticks;
}

std::string time_label(double us) {
  if (us >= 0.999e6) return fmt::format("{:.3g} s", us / 1e6);
  if (us >= 999) return fmt::format("{:.3g} ms", us / 1e3);
  return us >= 0.0999 ? fmt::format("{:.3g} µs", us) : fmt::format("{:.3g} ns", us * 1e3);
}

std::string bandwidth_label(double gb_per_s) {
  if (gb_per_s >= 999) return fmt::format("{:.3g} TB/s", gb_per_s / 1e3);
  if (gb_per_s >= 0.0999) return fmt::format("{:.3g} GB/s", gb_per_s);
  return gb_per_s >= 0.999e-3 ? fmt::format("{:.3g} MB/s", gb_per_s * 1e3) : fmt::format("{:.3g} kB/s", gb_per_s * 1e6);
}

Look look_of(std::string_view algorithm, size_t number) {
  const auto all = topo::families();
  const auto found = std::find_if(all.begin(), all.end(), [&](const topo::Family& f) { return f.name == algorithm; });
  if (found != all.end()) number = static_cast<size_t>(found - all.begin());
  return {colours[number % colours.size()], static_cast<int>(number % look_shapes)};
}

std::string shape(double x, double y, const Look& look) {
  constexpr double r = 4;
  switch (look.shape % outlines) {
    case 1:
      return polygon({{x - 3.4, y - 3.4}, {x + 3.4, y - 3.4}, {x + 3.4, y + 3.4}, {x - 3.4, y + 3.4}}, look);
    case 2:
      return polygon({{x, y - 4.6}, {x + 4.4, y + 3.4}, {x - 4.4, y + 3.4}}, look);
    case 3:
      return polygon({{x, y - 5}, {x + 5, y}, {x, y + 5}, {x - 5, y}}, look);
    case 4:
      return polygon({{x, y + 4.6}, {x + 4.4, y - 3.4}, {x - 4.4, y - 3.4}}, look);
    default:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"{}/>\n", x, y, r, colours_of(look));
  }
}

std::string path(const std::vector<std::pair<double, double>>& places, std::string_view style) {
  std::string d;
  for (const auto& [x, y] : places) d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? "M" : "L", x, y);
  return d.empty() ? "" : fmt::format("<path d=\"{}\" fill=\"none\"{}/>\n", d, style);
}

std::string Panel::frame(std::string_view title, const std::vector<Tick>& sizes, const std::vector<Tick>& values) const {
  const double right = box.x + box.width;
  const double bottom = box.y + box.height;
  std::string out = svg::text(box.x, box.y - 10, title, " font-size=\"14\" font-weight=\"600\"");
  out += svg::rect(box, " fill=\"#fff\" stroke=\"#999\"");
  const auto grid = [](const Tick& tick) { return tick.label.empty() ? " stroke=\"#f1f1f1\"" : " stroke=\"#d8d8d8\""; };
  for (const Tick& tick : sizes) {
    out += svg::line(x.at(tick.value), box.y, x.at(tick.value), bottom, grid(tick));
    if (!tick.label.empty()) out += svg::text(x.at(tick.value), bottom + 18, tick.label, " text-anchor=\"middle\"");
  }
  for (const Tick& tick : values) {
    out += svg::line(box.x, y.at(tick.value), right, y.at(tick.value), grid(tick));
    if (!tick.label.empty()) out += svg::text(box.x - 8, y.at(tick.value) + 4, tick.label, " text-anchor=\"end\"");
  }
  return out;
}

}  // namespace gyre::perf
