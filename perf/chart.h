// A panel of a report's picture: values over sizes, both axes logarithmic. Times span six decades and sizes as many, and what decides
// between algorithms is a ratio, which has the same length everywhere only so.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedule/svg.h"

namespace gyre::perf {

/// From the least to the most, both positive, onto pixels.
struct LogAxis {
  double least = 1, most = 10;
  double from = 0, to = 100;  ///< pixels of least and most

  double at(double value) const;
};

struct Tick {
  double value;
  std::string label;  ///< empty: a line only
};
/// Powers of two of bytes, no more labels than `most_labels`.
std::vector<Tick> size_ticks(double least, double most, int most_labels);
/// Powers of ten, and 2 and 5 times these: with a label where there are few decades. `text` says a value with its unit.
std::vector<Tick> value_ticks(double least, double most, std::string (*text)(double));
/// "0.5 µs", "2 ms", of microseconds; "0.05 GB/s".
std::string time_label(double us);
std::string bandwidth_label(double gb_per_s);

inline constexpr int look_shapes = 10;
/// How a series looks: colours that people with any colour vision tell apart, and a shape for those that see none.
struct Look {
  std::string_view colour;
  int shape = 0;  ///< of look_shapes
};
/// The same algorithm looks the same in every picture; what is none has the number'th of the other looks.
Look look_of(std::string_view algorithm, size_t number);
/// A mark of 5 pixels around a place.
std::string shape(double x, double y, const Look&);
/// A line through places; dotted or not.
std::string path(const std::vector<std::pair<double, double>>&, std::string_view style);

/// The frame of a panel: background, grid, labels, title.
struct Panel {
  schedule::svg::Box box;
  LogAxis x, y;

  std::string frame(std::string_view title, const std::vector<Tick>& sizes, const std::vector<Tick>& values) const;
};

}  // namespace gyre::perf
