#include "perf/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/version.h"
#include "plugin/tuner_profile.h"
#include "topo/json_text.h"

namespace gyre::perf {
namespace {

using nlohmann::ordered_json;

ordered_json& job_of(ordered_json& section, int ranks_per_node, int nodes) {
  ordered_json& jobs = section["jobs"];
  for (ordered_json& job : jobs)
    if (job["ranks_per_node"] == ranks_per_node && job["nodes"] == nodes) return job;
  jobs.push_back({{"ranks_per_node", ranks_per_node}, {"nodes", nodes}, {"choices", ordered_json::object()}});
  return jobs.back();
}

}  // namespace

Result<ordered_json> read_profile(const std::string& file) {
  constexpr size_t most_bytes = 1 << 20;  // as the tuner takes it
  std::error_code unknown;
  if (!std::filesystem::exists(file, unknown)) return ordered_json::object();
  const auto text = read_file(file, most_bytes);
  if (!text) return Error{Code::invalid_argument, fmt::format("{}: {}", file, text.error().what)};
  if (text->empty()) return ordered_json::object();
  if (!GYRE_TRY(topo::parse_json(*text, file)).is_object())
    return Error{Code::invalid_argument, fmt::format("{}: must be an object", file)};
  return ordered_json::parse(*text);
}

Status write_profile(const std::string& file, const ordered_json& profile) {
  constexpr auto typed = ordered_json::error_handler_t::replace;  // what was typed may be no UTF-8
  return replace_file(file, profile.dump(1, ' ', false, typed) + "\n");
}

Result<ordered_json> nccl_section(const ordered_json& profile, const std::string& file) {
  if (!profile.contains("nccl")) return ordered_json();
  const ordered_json& section = profile["nccl"];
  if (!section.is_object() || !section.contains("version") || section["version"] != version) return ordered_json();
  if (const auto rules = plugin::parse_tuner_profile(ordered_json{{"nccl", section}}.dump(), file); !rules) return rules.error();
  return section;
}

void put_measured(ordered_json& section, const MeasuredChoices& measured) {
  ordered_json& job = job_of(section, measured.ranks_per_node, measured.nodes);
  job["choices"][measured.collective] = measured.choices;
  job["measured"][measured.collective] = measured.how;
}

void keep_jobs(const ordered_json& before, ordered_json& section, int ranks_per_node) {
  if (before.is_null()) return;
  for (const ordered_json& job : before["jobs"]) {
    if (before["machine"] == section["machine"] && job["ranks_per_node"] != ranks_per_node) {
      section["jobs"].push_back(job);
    } else if (job.contains("measured")) {
      for (const auto& [collective, how] : job["measured"].items())
        put_measured(section, {job["ranks_per_node"], job["nodes"], collective, job["choices"][collective], how});
    }
  }
}

}  // namespace gyre::perf
