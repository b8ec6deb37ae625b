// What a report shows of one kind of call: its times over sizes, a series for each algorithm, which of them was chosen, and what was
// predicted. Made of results; knows nothing of how it is drawn.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "perf/results.h"
#include "topo/constants.h"

namespace gyre::perf {

/// A measured size of a series.
struct Mark {
  size_t bytes = 0;
  double us = 0;        ///< the median of a call
  double least_us = 0;  ///< of all rounds
  double most_us = 0;
  size_t place = 0;  ///< among the sizes of its file: neighbours are joined by a line, others are not
};

struct Series {
  std::string label;
  std::string algorithm;  ///< decides how it looks; empty: of several
  std::vector<Mark> marks;

  const Mark* at(size_t bytes) const;
};

/// What ran, or would run, at a size.
struct Chosen {
  Mark mark;
  std::string algorithm;
  std::optional<double> in_place_us;
  std::optional<double> predicted_us;
};

struct Section {
  std::string title;                   ///< "all-reduce of float, sum: 4 ranks over shm"
  std::vector<std::string> sentences;  ///< what there is to see
  double bus_factor = 1;               ///< busbw / algbw; 0: one rank, that has no bus
  std::vector<Series> series;          ///< the fastest at the largest size first
  std::vector<Chosen> chosen;          ///< by size; empty: not known
  bool series_are_of_chosen = false;   ///< nothing was measured but what was chosen
  bool chosen_apart = false;           ///< what was chosen was measured by itself, at another time than the series
  std::vector<std::string> sources;    ///< files, and what they say of themselves

  std::vector<size_t> sizes() const;  ///< ascending
};

/// One for each number of ranks, transport, type, operation and root, in the order of the files. Sweeps with `auto` say what was chosen;
/// of samples alone the constants say it. Error: a file has nothing that can be drawn.
Result<std::vector<Section>> sections_of(std::span<const Results>, const topo::Constants&);

/// "8 B", "64 KiB", "1.5 MiB": with at most three digits.
std::string size_text(size_t bytes);

}  // namespace gyre::perf
