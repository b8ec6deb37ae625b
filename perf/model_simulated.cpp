#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "perf/model.h"
#include "perf/report_json.h"
#include "perf/simulated_choice.h"
#include "topo/constants.h"

namespace gyre::perf {
namespace {

using nlohmann::ordered_json;

// Of all algorithms at all sizes that could be simulated.
class Times {
 public:
  void add(double block_bytes, const SimulatedChoice& played) {
    const auto bytes = static_cast<size_t>(std::ceil(block_bytes));  // of small calls a block may be less than a byte
    if (played.too_large > 0 || (!bytes_.empty() && bytes_.back() >= bytes)) return;
    bytes_.push_back(bytes);
    for (const auto& [candidate, seconds] : played.times) us_[{candidate->family, candidate->shape.grid}].push_back(seconds * 1e6);
  }
  // What could not run at some size is left out.
  ordered_json entry(const ModelCommand& command, const topo::Query& query) const {
    const int per_node = command.nodes == 1 ? 0 : query.placement.per_node;
    ordered_json out{{"collective", name(query.collective)}, {"ranks", query.ranks}, {"per_node", per_node}, {"bytes", bytes_}};
    out["times"] = ordered_json::array();
    for (const auto& [of, us] : us_) {
      if (us.size() == bytes_.size()) out["times"].push_back({{"algorithm", of.first}, {"grid", of.second}, {"us", us}});
    }
    return out;
  }
  bool empty() const { return bytes_.empty(); }

 private:
  std::vector<size_t> bytes_;
  std::map<std::pair<std::string_view, std::vector<int>>, std::vector<double>> us_;
};

Status write(const ModelCommand& command, const topo::Query& query, const Times& times) {
  const std::string given = GYRE_TRY(topo::constants_text(command.constants));
  ordered_json file = ordered_json::parse(given);  // has been read before
  const ordered_json entry = times.entry(command, query);
  ordered_json& all = file["machines"][command.machine]["measured"];
  ordered_json kept = ordered_json::array();
  for (const ordered_json& other : all) {
    const bool same = other["collective"] == entry["collective"] && other["ranks"] == entry["ranks"] &&
                      other.value("per_node", 0) == entry["per_node"].get<int>();
    if (!same) kept.push_back(other);
  }
  kept.push_back(entry);
  all = kept;
  return write_file("--output", command.file, file.dump(1) + "\n");
}

void print_row(size_t bytes, const topo::Choice& choice, const SimulatedChoice& played) {
  const topo::Candidate& best = *choice.best();
  fmt::print("{:>12} {:<30} {:>12.2f} {:>14.2f} {:>14.2f} {:>7.3f}  {}{}\n", bytes, named(best), best.price.seconds * 1e6,
             played.chosen * 1e6, played.best * 1e6, played.regret(), named(*played.fastest),
             played.too_large == 0 ? "" : fmt::format("; {} too large to simulate", played.too_large));
}

}  // namespace

Status simulate_choices(const ModelCommand& command, topo::Query query) {
  if (rooted(query.collective)) fmt::print("# simulated: one call, and the work of the busiest rank, which sets the pace of calls\n");
  query.shape_channels = 1;  // as the engine has it, which drives all channels with one thread
  topo::Profiles profiles;
  Times times;
  const auto play = [&](size_t bytes, bool shown) -> Status {
    query.block_bytes = block_bytes(query, bytes);
    const topo::Choice choice = topo::choose(query, profiles);
    if (choice.best() == nullptr) return Error{Code::invalid_argument, "no algorithm can run:\n" + topo::explain(query, choice)};
    const auto played = GYRE_TRY(simulated(query, choice, profiles));
    if (played) times.add(query.block_bytes, *played);
    if (shown && played) print_row(bytes, choice, *played);
    if (shown && !played) fmt::print("{:>12} {}: too many messages to be simulated\n", bytes, named(*choice.best()));
    return {};
  };
  fmt::print("{:>12} {:<30} {:>12} {:>14} {:>14} {:>7}  {}\n", "# size (B)", "algorithm", "time (us)", "simulated (us)", "best (us)",
             "regret", "of");
  for (size_t bytes = command.min_bytes;; bytes *= command.step_factor) {
    GYRE_TRY(play(bytes, true));
    if (bytes > command.max_bytes / command.step_factor) break;
    if (command.file.empty()) continue;
    const size_t quarter = (bytes * command.step_factor - bytes) / 4;  // how near the price is jumps with the number of slices
    for (size_t i = 1; i <= 3 && quarter > 0; ++i) GYRE_TRY(play(bytes + i * quarter, false));
  }
  if (command.file.empty()) return {};
  if (times.empty()) return Error{Code::invalid_argument, fmt::format("-o {}: nothing could be simulated", command.file)};
  return write(command, query, times);
}

}  // namespace gyre::perf
