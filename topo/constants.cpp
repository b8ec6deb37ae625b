#include "topo/constants.h"

#include <fmt/format.h>

#include <utility>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "topo/json_object.h"

namespace gyre::topo {
namespace {

using nlohmann::json;

constexpr char compiled_in[] =
#include "topo/constants_text.inc"
    ;

constexpr double per_ns = 1e9;

Result<std::string> origin(const JsonObject& of) {
  const JsonObject from = GYRE_TRY(of.object("origin"));
  GYRE_TRY(from.only({"machine", "date", "command", "note"}));
  std::vector<std::string> parts;
  for (const char* key : {"note", "machine", "command", "date"}) {
    std::string part = GYRE_TRY(from.word(key));
    if (!part.empty()) parts.push_back(std::move(part));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

Result<schedule::LinkClass> link(const JsonObject& from, const std::string& name) {
  GYRE_TRY(from.only({"alpha_us", "beta_ns_per_byte", "overhead_us", "by_processor", "origin"}));
  schedule::LinkClass out;
  out.name = name;
  out.alpha = GYRE_TRY(from.number("alpha_us", per_us));
  out.beta = GYRE_TRY(from.number("beta_ns_per_byte", per_ns));
  out.overhead = GYRE_TRY(from.number("overhead_us", per_us));
  out.by_processor = GYRE_TRY(from.truth("by_processor"));
  return out;
}

Result<schedule::RankCosts> rank(const JsonObject& from) {
  GYRE_TRY(from.only({"gamma_ns_per_byte", "copy_ns_per_byte", "step_us", "origin"}));
  schedule::RankCosts out;
  out.gamma = GYRE_TRY(from.number("gamma_ns_per_byte", per_ns));
  out.copy = GYRE_TRY(from.number("copy_ns_per_byte", per_ns));
  out.step = GYRE_TRY(from.number("step_us", per_us));
  return out;
}

Result<DirectCosts> direct(const JsonObject& from) {
  GYRE_TRY(from.only({"meeting_us", "peer_us", "leaving_us", "shown_ns_per_byte", "cached_ns_per_byte", "cache_bytes", "memory_ns_per_byte",
                      "attaching_us", "attached_ns_per_byte", "origin"}));
  DirectCosts out;
  out.meeting = GYRE_TRY(from.number("meeting_us", per_us));
  out.peer = GYRE_TRY(from.number("peer_us", per_us));
  out.leaving = GYRE_TRY(from.number("leaving_us", per_us));
  out.shown = GYRE_TRY(from.number("shown_ns_per_byte", per_ns));
  out.cached = GYRE_TRY(from.number("cached_ns_per_byte", per_ns));
  out.cache_bytes = GYRE_TRY(from.number("cache_bytes", 1));
  out.memory = GYRE_TRY(from.number("memory_ns_per_byte", per_ns));
  out.attaching = GYRE_TRY(from.number("attaching_us", per_us));
  out.attached = GYRE_TRY(from.number("attached_ns_per_byte", per_ns));
  return out;
}

Result<DirectBounds> direct_bounds(const JsonObject& from) {
  GYRE_TRY(from.only({"shown_bytes", "shown_rooted_bytes", "read_by_all_elements", "read_by_all_least_bytes", "read_by_all_most_bytes",
                      "attached_ranks", "attached_shown", "attached_least_bytes", "attached_least_rooted_bytes",
                      "attached_most_rooted_bytes", "attached_most_read_bytes", "bounced_scatters", "bounced_most_scattered_bytes",
                      "bounced_all_to_all", "attached_reduces", "origin"}));
  DirectBounds out;
  out.shown = GYRE_TRY(from.bytes("shown_bytes"));
  out.shown_rooted = GYRE_TRY(from.bytes("shown_rooted_bytes"));
  out.read_by_all_elements = GYRE_TRY(from.bytes("read_by_all_elements"));
  out.read_by_all_least = GYRE_TRY(from.bytes("read_by_all_least_bytes"));
  out.read_by_all_most = GYRE_TRY(from.bytes("read_by_all_most_bytes"));
  if (out.read_by_all_most < out.read_by_all_least) return from.wrong("read_by_all_most_bytes", "is less than read_by_all_least_bytes");
  out.attached_ranks = GYRE_TRY(from.whole("attached_ranks"));
  out.attached_shown = GYRE_TRY(from.truth("attached_shown"));
  out.attached_least = GYRE_TRY(from.bytes("attached_least_bytes"));
  out.attached_least_rooted = GYRE_TRY(from.bytes("attached_least_rooted_bytes"));
  out.attached_most_rooted = GYRE_TRY(from.bytes("attached_most_rooted_bytes"));
  out.attached_most_read = GYRE_TRY(from.bytes("attached_most_read_bytes"));
  const auto has = [&](const char* key) { return from.value().contains(key); };  // files of before 2026-12 have none of these
  if (has("bounced_scatters")) out.bounced_scatters = GYRE_TRY(from.truth("bounced_scatters"));
  if (has("bounced_most_scattered_bytes")) out.bounced_most_scattered = GYRE_TRY(from.bytes("bounced_most_scattered_bytes"));
  if (has("bounced_all_to_all")) out.bounced_all_to_all = GYRE_TRY(from.truth("bounced_all_to_all"));
  if (has("attached_reduces")) out.attached_reduces = GYRE_TRY(from.truth("attached_reduces"));
  return out;
}

Result<PacketCosts> packets(const JsonObject& from) {
  GYRE_TRY(from.only({"latency_us", "part_ns_per_byte", "origin"}));
  PacketCosts out;
  out.latency = GYRE_TRY(from.number("latency_us", per_us));
  out.part = GYRE_TRY(from.number("part_ns_per_byte", per_ns));
  return out;
}

/// The tables that machines name entries of.
struct Tables {
  JsonObject links, ranks, direct, direct_bounds, packets;
};

/// What a machine names in a table; nothing: it names none.
template <class T>
Result<std::optional<T>> named(const JsonObject& machine, const std::string& key, const JsonObject& entries,
                               Result<T> (*read)(const JsonObject&)) {
  if (!machine.value().contains(key)) return std::optional<T>();
  const std::string name = GYRE_TRY(machine.word(key));
  if (!entries.value().contains(name)) return machine.wrong(key, fmt::format("there is no such entry in \"{}\"", key));
  const JsonObject entry = GYRE_TRY(entries.object(name));
  return std::optional<T>(GYRE_TRY(read(entry)));
}

Result<Costs> machine(const JsonObject& from, const Tables& tables) {
  GYRE_TRY(
      from.only({"local", "network", "rank", "direct", "direct_bounds", "packets", "nics_per_node", "processors_per_node", "measured"}));
  Costs out;
  for (const auto& [kind, key] : {std::pair{inside, "local"}, std::pair{between, "network"}}) {
    const std::string name = GYRE_TRY(from.word(key));
    if (!tables.links.value().contains(name)) return from.wrong(key, "there is no such link in \"links\"");
    const JsonObject described = GYRE_TRY(tables.links.object(name));
    out.link[kind] = GYRE_TRY(link(described, name));
  }
  const std::string name = GYRE_TRY(from.word("rank"));
  if (!tables.ranks.value().contains(name)) return from.wrong("rank", "there is no such rank in \"ranks\"");
  const JsonObject described = GYRE_TRY(tables.ranks.object(name));
  out.rank = GYRE_TRY(rank(described));
  out.direct = GYRE_TRY(named(from, "direct", tables.direct, direct));
  out.direct_bounds = GYRE_TRY(named(from, "direct_bounds", tables.direct_bounds, direct_bounds));
  out.packets = GYRE_TRY(named(from, "packets", tables.packets, packets));
  out.nics_per_node = GYRE_TRY(from.whole("nics_per_node"));
  out.processors_per_node = GYRE_TRY(from.whole("processors_per_node"));
  out.measured = GYRE_TRY(parse_measured(from, "measured"));
  return out;
}

Result<MadeFor> made_for(const JsonObject& from) {
  GYRE_TRY(from.only({"processor", "processors", "gyre"}));
  MadeFor out;
  out.processors.model = GYRE_TRY(from.word("processor"));
  out.processors.count = GYRE_TRY(from.whole("processors"));
  out.version = GYRE_TRY(from.word("gyre"));
  return out;
}

/// All entries of a table, those too that no machine names.
template <class Read>
Status check_table(const std::string& key, const JsonObject& entries, Read read, Constants& out) {
  for (const auto& [name, ignored] : entries.value().items()) {
    const JsonObject one = GYRE_TRY(entries.object(name));
    GYRE_TRY(read(one));
    out.origins.emplace(fmt::format("{}.{}", key, name), GYRE_TRY(origin(one)));
  }
  return {};
}

std::string in_words(const Processors& processors) { return fmt::format("{} × {}", processors.count, processors.model); }

}  // namespace

std::string MadeFor::foreign(const Processors& here, std::string_view running) const {
  if (processors != here) return fmt::format("made for {}, and this machine has {}", in_words(processors), in_words(here));
  if (version != running) return fmt::format("made for gyre {}, and this is gyre {}", version, running);
  return {};
}

Result<Constants> parse_constants(std::string_view given, std::string_view source) {
  const json file = GYRE_TRY(parse_json(given, source));
  const JsonObject all(file, source, "");
  GYRE_TRY(all.only({"about", "made_for", "links", "ranks", "direct", "direct_bounds", "packets", "machines", "nccl"}));
  if (file.contains("nccl") && !file.contains("machines"))
    return all.wrong("machines", "is missing: the file says what NCCL chooses (GYRE_TUNER_FILE), not what things cost here");
  const json none = json::object();
  const auto or_none = [&](const std::string& key) {  // older files lack it
    return file.contains(key) ? all.object(key) : JsonObject(none, source, key);
  };
  const JsonObject links = GYRE_TRY(all.object("links"));
  const JsonObject ranks = GYRE_TRY(all.object("ranks"));
  const JsonObject machines = GYRE_TRY(all.object("machines"));
  const JsonObject directs = GYRE_TRY(or_none("direct"));
  const JsonObject bounds = GYRE_TRY(or_none("direct_bounds"));
  const JsonObject packets_of = GYRE_TRY(or_none("packets"));
  const Tables tables{links, ranks, directs, bounds, packets_of};
  Constants out;
  if (file.contains("made_for")) {
    const JsonObject where = GYRE_TRY(all.object("made_for"));
    out.made_for = GYRE_TRY(made_for(where));
  }
  const auto link_of = [](const JsonObject& one) { return link(one, ""); };
  GYRE_TRY(check_table("links", tables.links, link_of, out));
  GYRE_TRY(check_table("ranks", tables.ranks, rank, out));
  GYRE_TRY(check_table("direct", tables.direct, direct, out));
  GYRE_TRY(check_table("direct_bounds", tables.direct_bounds, direct_bounds, out));
  GYRE_TRY(check_table("packets", tables.packets, packets, out));
  for (const auto& [name, ignored] : machines.value().items()) {
    const JsonObject one = GYRE_TRY(machines.object(name));
    out.machines.emplace(name, GYRE_TRY(machine(one, tables)));
  }
  return out;
}

namespace {

Result<std::string> text_of(const std::string& file) {
  constexpr size_t most_bytes = 1 << 20;  // as gyre-perf writes it
  auto text = read_file(file, most_bytes);
  if (!text) return Error{Code::invalid_argument, fmt::format("{}: {}", file, text.error().what)};
  return text;
}

}  // namespace

Result<Constants> constants_of(const std::string& file) {
  return file.empty() ? default_constants() : parse_constants(GYRE_TRY(text_of(file)), file);
}

Result<Constants> constants_for_here(const ConstantsText& from) {
  const auto& [file, text] = from;
  Constants constants = file.empty() ? GYRE_TRY(default_constants()) : GYRE_TRY(parse_constants(text, file));
  const std::string foreign = constants.made_for ? constants.made_for->foreign(processors_of_host(), profile_version) : "";
  if (foreign.empty()) return constants;
  return Error{Code::invalid_argument,
               fmt::format("{}: {}; `gyre-perf tune` makes one for here, and without \"made_for\" it holds anywhere", file, foreign)};
}

Result<Costs> costs_here(const Constants& constants, const std::string& file, std::string_view machine) {
  auto costs = constants.machine(machine);
  if (file.empty() || (costs && costs->direct_bounds)) return costs;
  const Constants built_in = GYRE_TRY(default_constants());
  if (!costs) {
    log::info("GYRE_CONSTANTS={}: no machine {}, whose constants are those compiled in", file, machine);
    return built_in.machine(machine);
  }
  const auto same = built_in.machines.find(machine);
  if (same != built_in.machines.end()) costs->direct_bounds = same->second.direct_bounds;
  return costs;
}

std::string ConstantsText::digest() const { return fmt::format("{:016x}", fnv1a(text)); }

Result<ConstantsText> read_constants(const std::string& file) {
  auto text = GYRE_TRY(constants_text(file));  // first: what is half made when that fails would not be unmade
  return ConstantsText{file, std::move(text)};
}

Result<std::string> constants_text(const std::string& file) {
  return file.empty() ? Result<std::string>(std::string(compiled_in)) : text_of(file);
}

Result<Constants> default_constants() { return parse_constants(compiled_in, "the constants compiled in"); }

Result<Costs> Constants::machine(std::string_view name) const {
  const auto found = machines.find(name);
  if (found != machines.end()) return found->second;
  std::vector<std::string_view> names;
  for (const auto& [known, ignored] : machines) names.push_back(known);
  const std::string_view near = nearest(name, names);
  return Error{Code::invalid_argument, fmt::format("there are no constants of a machine '{}': must be one of {}{}", name,
                                                   fmt::join(names, ", "), near.empty() ? "" : fmt::format("; did you mean {}?", near))};
}

}  // namespace gyre::topo
