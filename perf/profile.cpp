#include "perf/profile.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "base/unique.h"
#include "base/version.h"
#include "plugin/tuner_profile.h"
#include "plugin/tuner_words.h"
#include "topo/json_text.h"

namespace gyre::perf {
namespace {

using nlohmann::ordered_json;

constexpr size_t most_profile_bytes = 1 << 20;  // as the tuner takes it

/// What a link leads to, be it there or not: renamed over, the link would be gone, and what it led to old.
std::string followed(const std::string& file) {
  std::error_code none;
  std::filesystem::path at = file;
  constexpr int most_links = 40;  // as Linux follows
  for (int i = 0; i < most_links && std::filesystem::is_symlink(at, none); ++i)
    at = at.parent_path() / std::filesystem::read_symlink(at, none);
  return at;
}

/// The file, which nobody else has locked while it is open. On a file system without locks, where that can't be had, open all the same.
Result<UniqueFd> opened_alone(const std::string& file) {
  for (;;) {
    UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!fd) return Error{Code::system, fmt::format("{}: {}", file, errno_text(errno))};
    if (::flock(fd.get(), LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      return fd;
    }
    // Who had it before may have put another in its place.
    struct stat its {
    }, now{};
    if (::fstat(fd.get(), &its) == 0 && ::stat(file.c_str(), &now) == 0 && its.st_dev == now.st_dev && its.st_ino == now.st_ino) return fd;
  }
}

ordered_json& job_of(ordered_json& section, int ranks_per_node, int nodes) {
  ordered_json& jobs = section["jobs"];
  for (ordered_json& job : jobs)
    if (job["ranks_per_node"] == ranks_per_node && job["nodes"] == nodes) return job;
  jobs.push_back({{"ranks_per_node", ranks_per_node}, {"nodes", nodes}, {"choices", ordered_json::object()}});
  return jobs.back();
}

bool names_gyre(const ordered_json& choices) {
  const auto is_gyre = [](const ordered_json& word) { return word.is_string() && word.get<std::string>() == plugin::gyre_beside; };
  return std::ranges::any_of(choices, [&](const ordered_json& choice) { return std::ranges::any_of(choice, is_gyre); });
}

std::string job_in_words(const ordered_json& job) {
  const auto nodes = job["nodes"].get<int64_t>();
  return fmt::format("{} ranks on {}", job["ranks_per_node"].get<int64_t>(),
                     nodes == 1 ? "one node" : fmt::format("each of {} nodes", nodes));
}

/// Another version's, that has this one's form: what was measured of NCCL alone holds whatever gyre is, what gyre predicts or runs itself
/// does not.
NcclSection carried_over(ordered_json section, const std::string& file) {
  const auto by = std::exchange(section["version"], profile_version).get<std::string>();
  const ordered_json jobs = std::exchange(section["jobs"], ordered_json::array());
  section["origin"] = measured_origin;
  std::vector<std::string> dropped;
  for (const ordered_json& job : jobs) {
    const ordered_json measured = job.value("measured", ordered_json::object());
    for (const auto& [collective, choices] : job["choices"].items()) {
      const bool holds = measured.contains(collective) && !names_gyre(choices);
      if (holds) put_measured(section, {job["ranks_per_node"], job["nodes"], collective, choices, measured[collective]});
      if (!holds)
        dropped.push_back(fmt::format("{} of {} ({})", collective, job_in_words(job),
                                      measured.contains(collective) ? "by gyre's times, too" : "predicted"));
    }
  }
  const bool none = section["jobs"].empty();
  std::string said = fmt::format("{}: its \"nccl\" was made by gyre {}, and this is {}; ", file, by, profile_version);
  said += none ? "nothing of it holds" : "what was measured of NCCL alone stays";
  if (!dropped.empty()) said += fmt::format("; left out: {}", fmt::join(dropped, ", "));
  return {none ? ordered_json() : std::move(section), std::move(said)};
}

}  // namespace

Result<ordered_json> read_profile(const std::string& file) {
  std::error_code unknown;
  if (!std::filesystem::exists(file, unknown)) return ordered_json::object();
  const auto text = read_file(file, most_profile_bytes);
  if (!text) return Error{Code::invalid_argument, fmt::format("{}: {}", file, text.error().what)};
  if (text->empty()) return ordered_json::object();
  if (!GYRE_TRY(topo::parse_json(*text, file)).is_object())
    return Error{Code::invalid_argument, fmt::format("{}: must be an object", file)};
  return ordered_json::parse(*text);
}

Status change_profile(const std::string& file, const std::function<Status(ordered_json&)>& change) {
  const std::string real = followed(file);
  const UniqueFd alone = GYRE_TRY(opened_alone(real));
  ordered_json profile = GYRE_TRY(read_profile(real));
  GYRE_TRY(change(profile));
  constexpr auto typed = ordered_json::error_handler_t::replace;  // what was typed may be no UTF-8
  const std::string text = profile.dump(1, ' ', false, typed) + "\n";
  if (text.size() > most_profile_bytes)
    return Error{Code::invalid_argument,
                 fmt::format("{}: would have {} bytes, must have {} at most", file, text.size(), most_profile_bytes)};
  return replace_file(real, text);
}

Status check_profile(const std::string& file) { return check_replace(followed(file)); }

Result<NcclSection> nccl_section(const ordered_json& profile, const std::string& file) {
  if (!profile.contains("nccl")) return NcclSection();
  ordered_json section = profile["nccl"];
  const bool others =
      section.is_object() && section.contains("version") && section["version"].is_string() && section["version"] != profile_version;
  ordered_json as_ours = section;
  if (others) as_ours["version"] = profile_version;
  const auto rules = plugin::parse_tuner_profile(ordered_json{{"nccl", as_ours}}.dump(), file);
  if (rules) return others ? carried_over(std::move(section), file) : NcclSection{std::move(section), {}};
  if (!others) return rules.error();
  return NcclSection{{}, fmt::format("{}: its \"nccl\" is another version's, and nothing of it holds: {}", file, rules.error().what)};
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
