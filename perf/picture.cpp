#include "perf/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "perf/chart.h"

namespace gyre::perf {
namespace {

namespace svg = schedule::svg;

constexpr double picture_width = 1240;
constexpr double panel_width = 430;
constexpr double panel_height = 380;
constexpr double first_panel_x = 84;
constexpr double second_panel_x = 606;
constexpr double legend_x = 1056;
constexpr double words_height = 30;  // of the title
constexpr double sentence_height = 19;
constexpr double above_panel = 34;
constexpr double below_panel = 50;

// What a panel shows of a mark: its time, or its bandwidth.
struct Value {
  bool bandwidth = false;
  double factor = 1;

  double of(size_t bytes, double us) const { return bandwidth ? factor * static_cast<double>(bytes) / us / 1e3 : us; }
};

// The least and the most that is drawn, with some room. Of rounds the medians: a single one that was disturbed would make all else small.
std::pair<double, double> range(const Section& section, const Value& value) {
  double least = INFINITY;
  double most = 0;
  const auto take = [&](size_t bytes, double us) {
    if (bytes == 0) return;
    least = std::min(least, value.of(bytes, us));
    most = std::max(most, value.of(bytes, us));
  };
  for (const Series& series : section.series) {
    for (const Mark& m : series.marks) take(m.bytes, m.us);
  }
  for (const Chosen& c : section.chosen) {
    take(c.mark.bytes, c.mark.us);
    if (c.predicted_us) take(c.mark.bytes, *c.predicted_us);
  }
  return {least / 1.25, most * 1.25};
}

using Places = std::vector<std::pair<double, double>>;

// Where a section's marks are in a panel.
struct Plot {
  const Section& section;
  Panel panel;
  Value value;

  std::pair<double, double> place(size_t bytes, double us) const {
    return {panel.x.at(static_cast<double>(bytes)), panel.y.at(value.of(bytes, us))};
  }

  double within(double y) const { return std::clamp(y, panel.box.y, panel.box.y + panel.box.height); }

  // Neighbouring sizes of the file are joined.
  std::string lines(const Series& series, const Look& look) const {
    std::string out;
    Places run;
    size_t next = 0;
    const std::string style = fmt::format(" stroke=\"{}\" stroke-width=\"1.8\" stroke-linejoin=\"round\"", look.colour);
    for (const Mark& m : series.marks) {
      if (m.bytes == 0) continue;
      if (m.place != next) out += path(run, style), run.clear();
      run.push_back(place(m.bytes, m.us));
      next = m.place + 1;
    }
    return out + path(run, style);
  }

  std::string marks(const Series& series, const Look& look) const {
    std::string out;
    for (const Mark& m : series.marks) {
      if (m.bytes == 0) continue;
      const auto [x, y] = place(m.bytes, m.us);
      if (m.most_us > m.least_us) {
        out += svg::line(x, within(place(m.bytes, m.least_us).second), x, within(place(m.bytes, m.most_us).second),
                         fmt::format(" stroke=\"{}\" stroke-width=\"1\" stroke-opacity=\"0.6\"", look.colour));
      }
      const double bandwidth = Value{true, section.bus_factor > 0 ? section.bus_factor : 1}.of(m.bytes, m.us);
      out += fmt::format("<g>{}<title>{}, {}: {}, {}</title></g>\n", shape(x, y, look), svg::escaped(series.label), size_text(m.bytes),
                         time_label(m.us), bandwidth_label(bandwidth));
    }
    return out;
  }

  std::string highlight() const {
    Places all;
    for (const Chosen& c : section.chosen) {
      if (c.mark.bytes != 0) all.push_back(place(c.mark.bytes, c.mark.us));
    }
    return path(all, " stroke=\"#F0E442\" stroke-width=\"13\" stroke-linecap=\"round\" stroke-linejoin=\"round\" stroke-opacity=\"0.75\"");
  }

  std::string rings() const {
    std::string out;
    for (const Chosen& c : section.chosen) {
      if (c.mark.bytes == 0) continue;
      const auto [x, y] = place(c.mark.bytes, c.mark.us);
      if (section.chosen_apart) out += shape(x, y, look_of(c.algorithm, 0));
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6.8\" fill=\"none\" stroke=\"#000\" stroke-width=\"1.3\"/>\n", x, y);
    }
    return out;
  }

  std::string prediction() const {
    Places all;
    for (const Chosen& c : section.chosen) {
      if (c.predicted_us && c.mark.bytes != 0) all.push_back(place(c.mark.bytes, *c.predicted_us));
    }
    return path(all, " stroke=\"#000\" stroke-width=\"2\" stroke-dasharray=\"0.1 4.5\" stroke-linecap=\"round\"");
  }
};

std::vector<Look> looks_of(const Section& section) {
  std::vector<Look> looks;
  for (size_t i = 0; i < section.series.size(); ++i) {
    Look look = look_of(section.series[i].algorithm, i);
    const auto alike = [&](const Look& other) { return other.colour == look.colour && other.shape == look.shape; };
    // Two grids of an algorithm, or two files: alike but for the shape.
    for (int turn = 0; turn < look_shapes && std::any_of(looks.begin(), looks.end(), alike); ++turn)
      look.shape = (look.shape + 1) % look_shapes;
    looks.push_back(look);
  }
  return looks;
}

std::string panel_of(const Section& section, const std::vector<Look>& looks, double x, double y, bool bandwidth) {
  const Value value{bandwidth, section.bus_factor > 0 ? section.bus_factor : 1};
  const auto sizes = section.sizes();
  const size_t first = *std::upper_bound(sizes.begin(), sizes.end(), size_t{0});
  const double least = static_cast<double>(first) / 1.3;
  const double most = static_cast<double>(sizes.back()) * 1.3;
  const auto [low, high] = range(section, value);
  const svg::Box box{x, y, panel_width, panel_height};
  const Plot plot{section, {box, {least, most, x, x + panel_width}, {low, high, y + panel_height, y}}, value};
  const std::string title = !bandwidth               ? "Time of a call: lower is better"
                            : section.bus_factor > 0 ? "Bus bandwidth: higher is better"
                                                     : "Bandwidth (one rank has no bus): higher is better";
  std::string out = plot.panel.frame(title, size_ticks(least, most, 7), value_ticks(low, high, bandwidth ? bandwidth_label : time_label));
  out += plot.highlight();
  for (size_t i = 0; i < looks.size(); ++i) out += plot.lines(section.series[i], looks[i]);
  for (size_t i = 0; i < looks.size(); ++i) out += plot.marks(section.series[i], looks[i]);
  out += plot.prediction() + plot.rings();
  out += svg::text(x + panel_width / 2, y + panel_height + 40, "size of the larger buffer", " text-anchor=\"middle\" fill=\"#444\"");
  return out;
}

// Algorithms that are chosen and have no line: only their marks are there.
std::vector<std::string> marked_alone(const Section& section) {
  std::vector<std::string> out;
  for (const Chosen& c : section.chosen) {
    const auto is_its = [&](const Series& s) { return s.algorithm == c.algorithm; };
    const bool has_line = !section.chosen_apart || std::any_of(section.series.begin(), section.series.end(), is_its);
    if (!has_line && std::find(out.begin(), out.end(), c.algorithm) == out.end()) out.push_back(c.algorithm);
  }
  return out;
}

std::string legend_of(const Section& section, const std::vector<Look>& looks, double y) {
  std::string out;
  const auto entry = [&](const std::string& sample, const std::string& words) {
    out += sample + svg::text(legend_x + 42, y + 4, words);
    y += 21;
  };
  y += 6;
  if (!section.chosen.empty()) {
    const std::string band = path({{legend_x + 4, y}, {legend_x + 30, y}},
                                  " stroke=\"#F0E442\" stroke-width=\"13\" stroke-linecap=\"round\" stroke-opacity=\"0.75\"");
    const std::string ring = fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6.8\" fill=\"none\" stroke=\"#000\" stroke-width=\"1.3\"/>\n", legend_x + 17, y);
    entry(band + ring, "chosen by gyre");
  }
  const auto& all = section.chosen;
  if (std::any_of(all.begin(), all.end(), [](const Chosen& c) { return c.predicted_us.has_value(); })) {
    entry(path({{legend_x, y}, {legend_x + 34, y}},
               " stroke=\"#000\" stroke-width=\"2\" stroke-dasharray=\"0.1 4.5\" stroke-linecap=\"round\""),
          "predicted for it");
  }
  y += 10;
  for (size_t i = 0; i < looks.size(); ++i) {
    const std::string line = path({{legend_x, y}, {legend_x + 34, y}}, fmt::format(" stroke=\"{}\" stroke-width=\"1.8\"", looks[i].colour));
    entry(line + shape(legend_x + 17, y, looks[i]), section.series[i].label);
  }
  for (const std::string& algorithm : marked_alone(section)) entry(shape(legend_x + 17, y, look_of(algorithm, 0)), algorithm);
  return out;
}

double height_of(const Section& section, bool with_words) {
  const double words = with_words ? words_height + sentence_height * static_cast<double>(section.sentences.size()) : 0;
  const double legend = 40 + 21 * (static_cast<double>(section.series.size() + marked_alone(section).size()) + 3);
  return words + above_panel + std::max(panel_height + below_panel, legend);
}

std::string drawn(const Section& section, double y, bool with_words) {
  std::string out;
  if (with_words) {
    y += words_height;
    out += svg::text(24, y - 6, section.title, " font-size=\"17\" font-weight=\"600\"");
    for (const std::string& sentence : section.sentences) out += svg::text(24, (y += sentence_height) - 5, sentence, " fill=\"#333\"");
  }
  y += above_panel;
  const auto looks = looks_of(section);
  return out + panel_of(section, looks, first_panel_x, y, false) + panel_of(section, looks, second_panel_x, y, true) +
         legend_of(section, looks, y);
}

std::string document(double height, const std::string& title, const std::string& inside) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" role=\"img\" "
             "font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"12\" fill=\"#000\">\n<title>{}</title>\n",
             picture_width, height, picture_width, height, svg::escaped(title)) +
         svg::rect({0, 0, picture_width, height}, " fill=\"#fff\"") + inside + "</svg>\n";
}

}  // namespace

std::string picture_of(const Section& section, bool with_words) {
  return document(height_of(section, with_words), section.title, drawn(section, 0, with_words));
}

std::string picture_of(std::span<const Section> sections) {
  constexpr double gap = 24;
  double y = 0;
  std::string inside;
  for (const Section& section : sections) {
    inside += drawn(section, y, true);
    y += height_of(section, true) + gap;
  }
  return document(y - gap, sections.front().title, inside);
}

}  // namespace gyre::perf
