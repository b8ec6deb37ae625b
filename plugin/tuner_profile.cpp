#include "plugin/tuner_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/text.h"
#include "base/version.h"
#include "plugin/tuner_words.h"
#include "topo/json_object.h"

namespace gyre::plugin {
namespace {

using topo::JsonObject;

template <size_t count>
std::optional<int> number_of(const std::array<std::string_view, count>& words, std::string_view word) {
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return std::nullopt;
  return static_cast<int>(found - words.begin());
}

/// `third`: of what NCCL runs where gyre does not.
std::string right_choice(std::string_view wrong, bool third) {
  std::vector<std::string> all;
  for (const std::string_view algorithm : tuner_algorithms)
    for (const std::string_view protocol : tuner_protocols) all.push_back(fmt::format("{}/{}", algorithm, protocol));
  const std::string_view near = nearest(wrong.substr(0, 40), std::vector<std::string_view>(all.begin(), all.end()));
  return fmt::format("{}must be one of {}, a slash, and one of {}, or {} for its own choice{}{}",
                     third ? fmt::format("what is behind {} ", gyre_beside) : "", fmt::join(tuner_algorithms, ", "),
                     fmt::join(tuner_protocols, ", "), tuner_nccls_own, third ? "" : fmt::format(", or {} for gyre beside it", gyre_beside),
                     near.empty() ? "" : fmt::format("; perhaps {}", near));
}

/// Sets what NCCL runs. False: there is no such thing.
bool set_algorithm(TunerRule& rule, std::string_view word) {
  rule.algorithm = rule.protocol = TunerRule::nccls_own;
  if (word == tuner_nccls_own) return true;
  const size_t slash = std::min(word.find('/'), word.size());
  const auto algorithm = number_of(tuner_algorithms, word.substr(0, slash));
  const auto protocol = number_of(tuner_protocols, word.substr(std::min(slash + 1, word.size())));
  if (!algorithm || !protocol) return false;
  rule.algorithm = *algorithm;
  rule.protocol = *protocol;
  return true;
}

/// A collective's choice number i, as a rule from its first size on; `rule` says for which job.
Result<TunerRule> profile_choice(const JsonObject& choices, const std::string& collective, size_t i, TunerRule rule) {
  const auto& given = choices.value()[collective][i];
  const size_t items = given.is_array() ? given.size() : 0;
  rule.gyre_beside = items >= 2 && given[1] == gyre_beside;
  const bool third = items == 3 && rule.gyre_beside;
  if ((items != 2 && !third) || !given[0].is_number_unsigned() || !given.back().is_string())
    return choices.wrong(collective, i,
                         "must be [a whole number of bytes, \"algorithm/protocol\"], or [a whole number of bytes, \"gyre\", "
                         "\"algorithm/protocol\"]");
  rule.least_bytes = given[0].get<uint64_t>();
  rule.most_bytes = std::numeric_limits<uint64_t>::max();
  const auto word = rule.gyre_beside && !third ? std::string(tuner_nccls_own) : given.back().get<std::string>();
  if (!set_algorithm(rule, word)) return choices.wrong(collective, i, right_choice(word, third));
  return rule;
}

/// NCCL's own choice is what it does without a rule.
bool is_rule(const TunerRule& choice) { return choice.has_algorithm() || choice.gyre_beside; }

/// Adds a collective's choices; `rule` says for which job.
Status add_choices(const JsonObject& choices, const std::string& collective, const TunerRule& rule, std::vector<TunerRule>& rules) {
  const auto& list = choices.value()[collective];
  if (!list.is_array() || list.empty()) return choices.wrong(collective, "must be a list of choices");
  TunerRule before;
  for (size_t i = 0; i < list.size(); ++i) {
    const TunerRule own = GYRE_TRY(profile_choice(choices, collective, i, rule));
    if (i == 0 && own.least_bytes != 0) return choices.wrong(collective, i, "must begin at 0 bytes: it is the first");
    if (i > 0 && own.least_bytes <= before.least_bytes) return choices.wrong(collective, i, "must begin after the one before it");
    if (i > 0 && is_rule(before)) rules.back().most_bytes = own.least_bytes - 1;
    before = own;
    if (is_rule(own)) rules.push_back(own);
  }
  return {};
}

/// Of choices that were measured, how: for people.
Status check_measured(const JsonObject& job, const JsonObject& choices) {
  if (!job.value().contains("measured")) return {};
  const JsonObject measured = GYRE_TRY(job.object("measured"));
  for (const auto& [collective, ignored] : measured.value().items())
    if (!choices.value().contains(collective)) return measured.wrong(collective, "has no choices");
  return {};
}

/// The medians among that, by bytes: {"1024": {"nccl": 12, "tree/ll": 8}}. What is not so is passed over.
std::vector<TunerRule::Times> medians(const JsonObject& job, const std::string& collective) {
  const nlohmann::json::json_pointer place("/measured/" + collective + "/us");
  if (!job.value().contains(place) || !job.value()[place].is_object()) return {};
  std::vector<TunerRule::Times> all;
  for (const auto& [size, times] : job.value()[place].items()) {
    uint64_t bytes = 0;
    const auto read = std::from_chars(size.data(), size.data() + size.size(), bytes);
    if (read.ec != std::errc() || read.ptr != size.data() + size.size() || !times.is_object()) continue;
    std::multimap<double, std::string> fastest;
    for (const auto& [choice, us] : times.items())
      if (us.is_number()) fastest.emplace(us.get<double>(), choice == tuner_nccls_own ? "NCCL's own choice" : choice);
    std::string words;
    for (const auto& [us, choice] : fastest) words += fmt::format("{}{} {:.1f} us", words.empty() ? "" : ", ", choice, us);
    if (!words.empty()) all.push_back({bytes, std::move(words)});
  }
  return all;
}

void add_medians(std::span<TunerRule> rules, const std::vector<TunerRule::Times>& medians) {
  for (TunerRule& rule : rules) {
    for (const TunerRule::Times& at : medians)
      if (rule.least_bytes <= at.bytes && at.bytes <= rule.most_bytes) rule.measured.push_back(at);
  }
}

/// `largest`: no job with as many ranks on each node has more nodes. What was measured in it says nothing of more.
Status add_job(const JsonObject& job, TunerRule rule, bool largest, std::vector<TunerRule>& rules) {
  const int64_t most_nodes = rule.most_nodes;
  const JsonObject choices = GYRE_TRY(job.object("choices"));
  GYRE_TRY(check_measured(job, choices));
  GYRE_TRY(choices.only({tuner_collectives.begin(), tuner_collectives.end()}));
  const size_t before = rules.size();
  for (const auto& [collective, ignored] : choices.value().items()) {
    rule.collective = *number_of(tuner_collectives, collective);
    const bool measured = job.value().contains(nlohmann::json::json_pointer("/measured/" + collective));
    rule.most_nodes = largest && measured ? rule.nodes : most_nodes;
    const size_t first = rules.size();
    GYRE_TRY(add_choices(choices, collective, rule, rules));
    add_medians(std::span(rules).subspan(first), medians(job, collective));
  }
  if (choices.value().empty() || rules.size() != before) return {};
  rule.algorithm = rule.protocol = TunerRule::nccls_own;
  rules.push_back(rule);
  return {};
}

/// Jobs by ranks per node, and then by nodes.
using Jobs = std::map<std::pair<int, int>, JsonObject>;

Result<Jobs> jobs_of(const JsonObject& section) {
  Jobs jobs;
  const auto given = GYRE_TRY(section.objects("jobs"));
  for (const JsonObject& job : given) {
    GYRE_TRY(job.only({"ranks_per_node", "nodes", "choices", "measured"}));
    const int per_node = GYRE_TRY(job.whole("ranks_per_node"));
    const int nodes = GYRE_TRY(job.whole("nodes"));
    for (const auto& [key, number] : {std::pair{"ranks_per_node", per_node}, {"nodes", nodes}})
      if (number == 0) return job.wrong(key, "must be 1 or more");
    if (!jobs.emplace(std::pair{per_node, nodes}, job).second)
      return job.wrong("nodes", fmt::format("there is another job of as many, with {} ranks on each", per_node));
  }
  return jobs;
}

/// Whether it is what gyre-perf tune writes, for the engine, though nothing may be in it for NCCL.
bool says_what_things_cost(const nlohmann::json& profile) {
  return profile.contains("links") && profile.contains("ranks") && profile.contains("machines");
}

}  // namespace

bool is_tuner_profile(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // as editors mark UTF-8
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '{';
}

Result<std::vector<TunerRule>> parse_tuner_profile(std::string_view text, std::string_view file) {
  const auto whole = GYRE_TRY(topo::parse_json(text, file));
  const JsonObject all(whole, file, "");
  if (!whole.contains("nccl")) {
    if (says_what_things_cost(whole)) return std::vector<TunerRule>{};
    return all.wrong("nccl", "is missing; gyre-perf tune_nccl or crossovers --profile adds it");
  }
  const JsonObject section = GYRE_TRY(all.object("nccl"));
  const std::string made_by = GYRE_TRY(section.word("version"));
  if (made_by != profile_version)
    return section.wrong(
        "version",
        fmt::format("made by another gyre, and this is {}; gyre-perf tune_nccl or crossovers --profile makes it anew", profile_version));
  GYRE_TRY(section.only({"machine", "version", "date", "origin", "jobs"}));
  for (const char* key : {"machine", "date", "origin"}) GYRE_TRY(section.word(key));
  const Jobs jobs = GYRE_TRY(jobs_of(section));
  std::vector<TunerRule> rules;
  for (auto job = jobs.begin(); job != jobs.end(); ++job) {
    const auto& [per_node, nodes] = job->first;
    const auto next = std::next(job);
    TunerRule rule;
    rule.nodes = nodes;
    const bool largest = next == jobs.end() || next->first.first != per_node;
    rule.most_nodes = nodes == 1 ? 1 : int64_t{2} * nodes;  // what goes over a network is another matter
    if (!largest) rule.most_nodes = std::min<int64_t>(rule.most_nodes, next->first.second - 1);
    rule.ranks_per_node = per_node;
    GYRE_TRY(add_job(job->second, rule, largest, rules));
  }
  return rules;
}

ProfileOrigin origin_of_choices(std::string_view text) {
  ProfileOrigin origin;
  const auto whole = topo::parse_json(text, "");
  const nlohmann::json::json_pointer section("/nccl"), jobs("/nccl/jobs");
  if (!whole || !whole->contains(jobs)) return origin;
  bool measured = false;
  for (const auto& job : (*whole)[jobs]) {
    for (const auto& how : job.value("measured", nlohmann::json::object())) {
      measured = true;
      const auto add = [&](const char* key, std::set<std::string>& to) {
        if (how.is_object() && how.contains(key) && how[key].is_string()) to.insert(how[key]);
      };
      add("machine", origin.machines);
      add("nccl", origin.nccl_versions);
    }
  }
  if (!measured) origin.predicted_for = (*whole)[section].value("machine", "");
  return origin;
}

}  // namespace gyre::plugin
