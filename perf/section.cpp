#include "perf/section.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "perf/fit.h"

namespace gyre::perf {
namespace {

// What makes points the same kind of call.
using SweepKind = std::tuple<const Benchmark*, int, std::string, std::string, std::string, int>;
SweepKind kind_of(const Point& p) { return {p.benchmark, p.ranks, p.joined_by(), p.type, p.redop, p.root}; }

// The points of one kind in one file.
struct SectionPart {
  const Results* from = nullptr;
  std::vector<const Point*> apart;     // out of place
  std::vector<const Point*> together;  // in place

  bool chooses() const { return !from->samples && from->asked == "auto"; }
  std::string stem() const { return std::filesystem::path(from->path).stem().string(); }
};

Mark mark_of(const Point& p, const std::vector<size_t>& sizes) {
  const auto place = std::lower_bound(sizes.begin(), sizes.end(), p.bytes) - sizes.begin();
  return {p.bytes, p.median_us(), p.least_us(), p.most_us(), static_cast<size_t>(place)};
}

std::vector<size_t> sizes_of(const SectionPart& part) {
  std::set<size_t> sizes;
  for (const Point* p : part.apart) sizes.insert(p->bytes);
  return {sizes.begin(), sizes.end()};
}

void sort_marks(Series& series) {
  std::sort(series.marks.begin(), series.marks.end(), [](const Mark& a, const Mark& b) { return a.bytes < b.bytes; });
}

// A series for each algorithm of the file, or for all together.
std::vector<Series> series_of(const SectionPart& part, bool by_algorithm) {
  const auto sizes = sizes_of(part);
  std::vector<Series> all;
  for (const Point* p : part.apart) {
    const std::string label = by_algorithm ? p->algorithm_text() : part.stem();
    auto found = std::find_if(all.begin(), all.end(), [&](const Series& s) { return s.label == label; });
    if (found == all.end()) found = all.insert(all.end(), {label, by_algorithm ? p->algorithm : "", {}});
    found->marks.push_back(mark_of(*p, sizes));
  }
  for (Series& series : all) sort_marks(series);
  return all;
}

std::vector<Chosen> chosen_by_sweep(const SectionPart& part) {
  const auto sizes = sizes_of(part);
  std::map<size_t, Chosen> by_size;
  for (const Point* p : part.apart) by_size.try_emplace(p->bytes, Chosen{mark_of(*p, sizes), p->algorithm, {}, p->predicted_us});
  for (const Point* p : part.together) {
    const auto at = by_size.find(p->bytes);
    if (at != by_size.end() && !at->second.in_place_us) at->second.in_place_us = p->median_us();
  }
  std::vector<Chosen> all;
  all.reserve(by_size.size());
  for (auto& [bytes, chosen] : by_size) all.push_back(std::move(chosen));
  return all;
}

// What would be chosen among the samples of each size.
Result<std::vector<Chosen>> chosen_by_price(const SectionPart& part, const topo::Constants& constants) {
  const auto sizes = sizes_of(part);
  topo::Profiles profiles;
  std::vector<Chosen> all;
  for (const size_t bytes : sizes) {
    const Point* any = *std::find_if(part.apart.begin(), part.apart.end(), [&](const Point* p) { return p->bytes == bytes; });
    const Sample sample{any->ranks, any->transport, any->processors, any->algorithm, any->grid, bytes, {}, *any->benchmark->collective,
                        any->nodes, any->network};
    const topo::Choice choice = topo::choose(query_of(sample, GYRE_TRY(costs_of(sample, constants))), profiles);
    const topo::Candidate* best = choice.best();
    const auto taken = std::find_if(part.apart.begin(), part.apart.end(), [&](const Point* p) {
      return best != nullptr && p->bytes == bytes && p->algorithm == best->family && p->grid == best->shape.grid;
    });
    if (taken == part.apart.end()) continue;  // it was not measured
    all.push_back({mark_of(**taken, sizes), (*taken)->algorithm_text(), {}, best->price.seconds * 1e6});
  }
  return all;
}

// Equal labels of several files get the names of the files.
void tell_apart(std::vector<std::pair<std::string, Series>>& all) {
  std::map<std::string, int> uses;
  for (const auto& [stem, series] : all) ++uses[series.label];
  for (auto& [stem, series] : all) {
    if (uses[series.label] > 1) series.label = fmt::format("{} ({})", series.label, stem);
  }
}

double middle_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Times of other moments say nothing about the choice.
std::string regret_sentence(const Section& section) {
  if (section.chosen_apart) return {};
  size_t best_at = 0;
  size_t compared = 0;
  double worst = 1;
  size_t worst_bytes = 0;
  for (const Chosen& c : section.chosen) {
    double least = c.mark.us;
    size_t others = 0;
    for (const Series& s : section.series) {
      const Mark* m = s.at(c.mark.bytes);
      if (m == nullptr) continue;
      least = std::min(least, m->us);
      ++others;
    }
    if (others < 2) continue;
    ++compared;
    if (c.mark.us <= least) ++best_at;
    if (c.mark.us / least > worst) worst = c.mark.us / least, worst_bytes = c.mark.bytes;
  }
  if (compared == 0) return {};
  const std::string at_worst =
      worst > 1 ? fmt::format("; at worst it takes {:.2f} times the fastest, at {}", worst, size_text(worst_bytes)) : "";
  return fmt::format("The algorithm that gyre chooses is the fastest measured at {} of {} sizes{}.", best_at, compared, at_worst);
}

std::string prediction_sentence(const Section& section) {
  std::vector<double> errors;
  for (const Chosen& c : section.chosen) {
    if (c.predicted_us) errors.push_back(std::abs(*c.predicted_us / c.mark.us - 1));
  }
  return errors.empty()
             ? ""
             : fmt::format("The predicted time of what is chosen is off by {:.0f} % at the median size.", 100 * middle_of(errors));
}

void describe(Section& section, bool spreads) {
  for (const std::string& sentence : {regret_sentence(section), prediction_sentence(section)}) {
    if (!sentence.empty()) section.sentences.push_back(sentence);
  }
  if (section.chosen_apart)
    section.sentences.emplace_back("What gyre chooses was measured by itself, before or after the lines, of one algorithm each.");
  if (spreads)
    section.sentences.emplace_back(
        "Lines join medians; a thin bar reaches from the fastest to the slowest of the rounds, or to the frame.");
  if (const auto sizes = section.sizes(); !sizes.empty() && sizes.front() == 0)
    section.sentences.emplace_back("0 bytes have no place on a logarithmic axis.");
}

// That the ranks of a node shared: samples say it, and sweeps inside a host.
std::optional<int64_t> processors_of(const SectionPart& part) {
  if (part.apart.empty()) return std::nullopt;
  if (part.from->samples) return part.apart.front()->processors;
  const nlohmann::json processors = part.from->about.value("/machine/processors"_json_pointer, nlohmann::json());
  return part.apart.front()->transport == "shm" && processors.is_number_integer() ? std::optional<int64_t>(processors) : std::nullopt;
}

std::string title_of(const SweepKind& kind, const std::vector<SectionPart>& parts) {
  const auto& [benchmark, ranks, joined_by, type, redop, root] = kind;
  std::string shared;
  for (const SectionPart& part : parts) {
    const int nodes = part.apart.empty() ? 1 : part.apart.front()->nodes;
    const int64_t processors = processors_of(part).value_or(ranks);
    if (processors < ranks / nodes) shared = fmt::format(" on {} processors{}", processors, nodes > 1 ? " of each node" : "");
  }
  std::string title(benchmark->title);
  title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(title.front())));
  return fmt::format("{} of {}{}{}: {} rank{}{}{}", title, type, redop.empty() ? "" : ", " + redop,
                     root < 0 ? "" : fmt::format(", root {}", root), ranks, ranks == 1 ? "" : "s", shared,
                     joined_by == "none" ? "" : " over " + joined_by);
}

Result<Section> section_of(const SweepKind& kind, const std::vector<SectionPart>& parts, const topo::Constants& constants) {
  Section section;
  section.title = title_of(kind, parts);
  section.bus_factor = bus_factor(*std::get<0>(kind), std::get<1>(kind));
  const auto choosing = std::count_if(parts.begin(), parts.end(), [](const SectionPart& p) { return p.chooses(); });
  const bool only_chosen = choosing == static_cast<std::ptrdiff_t>(parts.size());
  std::vector<std::pair<std::string, Series>> all;
  for (const SectionPart& part : parts) {
    const std::string command = part.from->about.value("command", "");
    section.sources.push_back(fmt::format("{}: {}{}{}", part.from->path, part.from->origin(), command.empty() ? "" : ": ", command));
    if (part.chooses() && choosing == 1) section.chosen = chosen_by_sweep(part);
    if (part.chooses() && choosing == 1 && !only_chosen) continue;  // drawn over those that it was chosen from
    for (Series& series : series_of(part, !part.chooses() || choosing == 1)) all.emplace_back(part.stem(), std::move(series));
  }
  section.series_are_of_chosen = only_chosen && choosing == 1;
  section.chosen_apart = !only_chosen && choosing == 1;
  if (parts.size() == 1 && parts.front().from->samples) section.chosen = GYRE_TRY(chosen_by_price(parts.front(), constants));
  tell_apart(all);
  bool spreads = false;
  for (auto& [stem, series] : all) {
    for (const Mark& m : series.marks) spreads = spreads || m.most_us > m.least_us;
    section.series.push_back(std::move(series));
  }
  std::stable_sort(section.series.begin(), section.series.end(), [](const Series& a, const Series& b) {
    const Mark& x = a.marks.back();
    const Mark& y = b.marks.back();
    return x.bytes != y.bytes ? x.bytes > y.bytes : x.us < y.us;
  });
  describe(section, spreads);
  return section;
}

}  // namespace

const Mark* Series::at(size_t bytes) const {
  const auto found = std::find_if(marks.begin(), marks.end(), [&](const Mark& m) { return m.bytes == bytes; });
  return found == marks.end() ? nullptr : &*found;
}

std::vector<size_t> Section::sizes() const {
  std::set<size_t> all;
  for (const Series& s : series) {
    for (const Mark& m : s.marks) all.insert(m.bytes);
  }
  for (const Chosen& c : chosen) all.insert(c.mark.bytes);
  return {all.begin(), all.end()};
}

std::string size_text(size_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) value /= 1024, ++unit;
  return fmt::format("{:.{}g} {}", value, value >= 1000 ? 4 : 3, units[unit]);
}

Result<std::vector<Section>> sections_of(std::span<const Results> files, const topo::Constants& constants) {
  std::vector<SweepKind> order;
  std::map<SweepKind, std::vector<SectionPart>> kinds;
  for (const Results& file : files) {
    for (const Point& point : file.points) {
      const SweepKind kind = kind_of(point);
      auto& parts = kinds[kind];
      if (parts.empty()) order.push_back(kind);
      if (parts.empty() || parts.back().from != &file) parts.push_back({&file, {}, {}});
      (point.in_place ? parts.back().together : parts.back().apart).push_back(&point);
    }
  }
  std::vector<Section> all;
  for (const SweepKind& kind : order) {
    Section section = GYRE_TRY(section_of(kind, kinds[kind], constants));
    const auto sizes = section.sizes();
    if (!sizes.empty() && sizes.back() > 0) all.push_back(std::move(section));
  }
  if (all.empty()) return Error{Code::invalid_argument, "there is nothing to draw: no size is above 0 bytes"};
  return all;
}

}  // namespace gyre::perf
