#include "topo/nccl/constants.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "topo/json_object.h"

namespace gyre::topo::nccl {
namespace {

constexpr char compiled_in[] =
#include "topo/nccl_constants_text.inc"
    ;

constexpr double per_us = 1e6;
constexpr double per_giga = 1e-9;
constexpr std::array<const char*, generations> generation_names{"volta", "ampere", "hopper", "blackwell"};
constexpr std::array<const char*, 2> processor_names{"intel", "amd"};

/// The place of a word among those that may stand there.
template <size_t count>
Result<size_t> one_of(const JsonObject& from, const std::string& key, const std::array<const char*, count>& words) {
  const std::string word = GYRE_TRY(from.word(key));
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return from.wrong(key, fmt::format("must be one of {}", fmt::join(words, ", ")));
  return static_cast<size_t>(found - words.begin());
}

template <size_t count>
Result<std::array<double, count>> numbers(const JsonObject& from, const std::string& key, double unit) {
  const std::vector<double> given = GYRE_TRY(from.numbers(key, count, unit));
  std::array<double, count> out{};
  std::copy(given.begin(), given.end(), out.begin());
  return out;
}

/// What has no sense at 0.
Result<double> above_zero(const JsonObject& from, const std::string& key, double unit) {
  const double number = GYRE_TRY(from.number(key, unit));
  if (!(number > 0)) return from.wrong(key, "must be more than 0");
  return number;
}
Result<int> at_least_one(const JsonObject& from, const std::string& key) {
  const int number = GYRE_TRY(from.whole(key));
  if (number < 1) return from.wrong(key, "must be 1 or more");
  return number;
}

Result<WireLines> lines(const JsonObject& from) {
  GYRE_TRY(from.only({"line_bytes", "data_bytes", "hop_us", "slot_bytes", "origin"}));
  GYRE_TRY(from.word("origin"));
  WireLines out;
  out.line_bytes = GYRE_TRY(above_zero(from, "line_bytes", 1));
  out.data_bytes = GYRE_TRY(above_zero(from, "data_bytes", 1));
  out.hop = GYRE_TRY(from.number("hop_us", per_us));
  out.slot_bytes = GYRE_TRY(above_zero(from, "slot_bytes", 1));
  return out;
}

Result<Channels> channels(const JsonObject& from) {
  GYRE_TRY(from.only({"count", "gb_per_s", "same", "run"}));
  Channels out;
  out.count = GYRE_TRY(at_least_one(from, "count"));
  out.rate = GYRE_TRY(above_zero(from, "gb_per_s", per_giga));
  out.same = GYRE_TRY(from.truth("same"));
  out.run = GYRE_TRY(at_least_one(from, "run"));
  return out;
}

Result<Machine> machine_of(const JsonObject& from) {
  GYRE_TRY(from.only({"gpus", "generation", "cpu", "nvlink", "ll128", "simple_tree", "link_gb_per_s", "link_us", "network_gb_per_s",
                      "network_us", "reduce_gb_per_s", "channels", "origin"}));
  GYRE_TRY(from.word("origin"));
  Machine out;
  out.gpus = GYRE_TRY(at_least_one(from, "gpus"));
  out.generation = GYRE_TRY(one_of(from, "generation", generation_names));
  out.cpu = static_cast<Processor>(GYRE_TRY(one_of(from, "cpu", processor_names)));
  out.nvlink = GYRE_TRY(from.truth("nvlink"));
  out.ll128 = GYRE_TRY(from.truth("ll128"));
  out.simple_tree = GYRE_TRY(from.truth("simple_tree"));
  out.link_rate = GYRE_TRY(above_zero(from, "link_gb_per_s", per_giga));
  out.link_latency = GYRE_TRY(from.number("link_us", per_us));
  out.network_rate = GYRE_TRY(above_zero(from, "network_gb_per_s", per_giga));
  out.network_latency = GYRE_TRY(from.number("network_us", per_us));
  out.reduce_rate = GYRE_TRY(above_zero(from, "reduce_gb_per_s", per_giga));
  const JsonObject found = GYRE_TRY(from.object("channels"));
  GYRE_TRY(found.only({"one_node", "nodes"}));
  const JsonObject one_node = GYRE_TRY(found.object("one_node"));
  out.one_node = GYRE_TRY(channels(one_node));
  const JsonObject nodes = GYRE_TRY(found.object("nodes"));
  out.nodes = GYRE_TRY(channels(nodes));
  return out;
}

Status latencies(const JsonObject& from, Published::OfAlgorithm& out) {
  out.base = GYRE_TRY(numbers<protocols>(from, "base_us", per_us));
  out.nvlink = GYRE_TRY(numbers<protocols>(from, "nvlink_us", per_us));
  out.pci = GYRE_TRY(numbers<protocols>(from, "pci_us", per_us));
  out.network = GYRE_TRY(numbers<protocols>(from, "network_us", per_us));
  return {};
}

Status tree(const JsonObject& from, Published& out) {
  GYRE_TRY(from.only({"base_us", "nvlink_us", "pci_us", "network_us", "correction", "share", "ll_share", "ll128_share_one_node",
                      "ll128_share_nodes", "simple_tree_share"}));
  GYRE_TRY(latencies(from, out.tree));
  const JsonObject correction = GYRE_TRY(from.object("correction"));
  for (size_t p = 0; p < protocols; ++p)
    out.correction[p] = GYRE_TRY(numbers<corrections>(correction, std::string(name(static_cast<Protocol>(p))), 1));
  out.tree_share = GYRE_TRY(from.number("share", 1));
  out.tree_ll_share = GYRE_TRY(from.number("ll_share", 1));
  out.tree_ll128_share_one_node = GYRE_TRY(from.number("ll128_share_one_node", 1));
  out.tree_ll128_share_nodes = GYRE_TRY(from.number("ll128_share_nodes", 1));
  out.simple_tree_share = GYRE_TRY(from.number("simple_tree_share", 1));
  return {};
}

Status ring(const JsonObject& from, Published& out) {
  GYRE_TRY(from.only({"base_us", "nvlink_us", "pci_us", "network_us", "ll_share", "ll128_share", "plateau_bytes", "plateau_before_ampere",
                      "plateau", "simple_overheads"}));
  GYRE_TRY(latencies(from, out.ring));
  out.ring_ll_share = GYRE_TRY(from.number("ll_share", 1));
  out.ring_ll128_share = GYRE_TRY(from.number("ll128_share", 1));
  out.plateau_bytes = GYRE_TRY(from.number("plateau_bytes", 1));
  out.plateau_before_ampere = GYRE_TRY(from.number("plateau_before_ampere", 1));
  out.plateau = GYRE_TRY(from.number("plateau", 1));
  out.simple_overheads = GYRE_TRY(from.number("simple_overheads", 1));
  return {};
}

Result<ByNodes> by_nodes(const JsonObject& all, const std::string& key) {
  const JsonObject from = GYRE_TRY(all.object(key));
  GYRE_TRY(from.only({generation_names.begin(), generation_names.end()}));
  ByNodes out{};
  for (size_t g = 0; g < generations; ++g) out[g] = GYRE_TRY(numbers<3>(from, generation_names[g], per_giga));
  return out;
}

Result<Published> published(const JsonObject& from) {
  GYRE_TRY(from.only(
      {"release", "tree", "ring", "overhead_us", "ll_gb_per_s", "ring_ll128_gb_per_s", "tree_ll128_gb_per_s", "tree_gb_per_s", "origin"}));
  GYRE_TRY(from.word("origin"));
  Published out;
  out.release = GYRE_TRY(from.word("release"));
  const JsonObject trees = GYRE_TRY(from.object("tree"));
  GYRE_TRY(tree(trees, out));
  const JsonObject rings = GYRE_TRY(from.object("ring"));
  GYRE_TRY(ring(rings, out));
  const JsonObject overhead = GYRE_TRY(from.object("overhead_us"));
  for (size_t p = 0; p < processor_names.size(); ++p) out.overhead[p] = GYRE_TRY(overhead.number(processor_names[p], per_us));
  out.ll = GYRE_TRY(by_nodes(from, "ll_gb_per_s"));
  out.ring_ll128 = GYRE_TRY(by_nodes(from, "ring_ll128_gb_per_s"));
  out.tree_ll128 = GYRE_TRY(by_nodes(from, "tree_ll128_gb_per_s"));
  out.tree_rate = GYRE_TRY(by_nodes(from, "tree_gb_per_s"));
  return out;
}

}  // namespace

std::string_view name(Algorithm algorithm) { return algorithm == Algorithm::tree ? "tree" : "ring"; }
std::string_view name(Protocol protocol) {
  constexpr std::array<std::string_view, protocols> names{"ll", "ll128", "simple"};
  return names[static_cast<size_t>(protocol)];
}
std::string text(const Entry& entry) { return fmt::format("{}/{}", name(entry.algorithm), name(entry.protocol)); }

Result<ModelConstants> parse_model_constants(std::string_view given, std::string_view source) {
  const auto file = GYRE_TRY(parse_json(given, source));
  const JsonObject all(file, source, "");
  GYRE_TRY(all.only({"about", "protocols", "machines", "published"}));
  ModelConstants out;
  const JsonObject every = GYRE_TRY(all.object("protocols"));
  for (size_t p = 0; p < protocols; ++p) {
    const JsonObject one = GYRE_TRY(every.object(std::string(name(static_cast<Protocol>(p)))));
    out.lines[p] = GYRE_TRY(lines(one));
  }
  const JsonObject machines = GYRE_TRY(all.object("machines"));
  for (const auto& [key, ignored] : machines.value().items()) {
    const JsonObject one = GYRE_TRY(machines.object(key));
    out.machines.emplace(key, GYRE_TRY(machine_of(one)));
  }
  const JsonObject defaults = GYRE_TRY(all.object("published"));
  out.published = GYRE_TRY(published(defaults));
  return out;
}

Result<ModelConstants> model_constants_of(const std::string& file) {
  constexpr size_t most_bytes = 1 << 20;
  if (file.empty()) return parse_model_constants(compiled_in, "the constants compiled in");
  const auto given = read_file(file, most_bytes);
  if (!given) return Error{Code::invalid_argument, fmt::format("{}: {}", file, given.error().what)};
  return parse_model_constants(*given, file);
}

Result<Machine> ModelConstants::machine(std::string_view wanted) const {
  const auto found = machines.find(wanted);
  if (found != machines.end()) return found->second;
  std::vector<std::string_view> names;
  for (const auto& [known, ignored] : machines) names.push_back(known);
  const std::string_view near = nearest(wanted, names);
  return Error{Code::invalid_argument, fmt::format("there are no constants of a machine '{}': must be one of {}{}", wanted,
                                                   fmt::join(names, ", "), near.empty() ? "" : fmt::format("; did you mean {}?", near))};
}

}  // namespace gyre::topo::nccl
