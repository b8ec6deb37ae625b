#include "perf/nccl_forced.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace gyre::perf {
namespace {

constexpr std::string_view env_word = "{env}";

/// A word as NCCL takes it, in any case, and as it can be compared with what it says: "COLLNET_DIRECT" and "CollNetDirect" are
/// collnetdirect.
std::string plain(std::string_view word) {
  std::string out;
  for (const char c : word)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// The list's word for NCCL's; as it is where the list has none.
template <size_t count>
std::string word_for(std::string_view said, const std::array<std::string_view, count>& words) {
  const auto found = std::ranges::find_if(words, [&](std::string_view word) { return plain(word) == plain(said); });
  return found == words.end() ? plain(said) : std::string(*found);
}

/// What stands behind a mark, up to a blank; empty: the mark is not there.
std::string_view word_behind(std::string_view mark, std::string_view text) {
  const size_t at = text.find(mark);
  if (at == text.npos) return {};
  text.remove_prefix(at + mark.size());
  return text.substr(0, std::min(text.find_first_of(" \t\r\n"), text.size()));
}

}  // namespace

std::vector<std::string> nccl_candidates(Collective collective) {
  const auto& names = plugin::tuner_collectives;
  const auto number = static_cast<ncclFunc_t>(std::ranges::find(names, name(collective)) - names.begin());
  std::vector<std::string> all{std::string(nccls_own)};
  for (int a = 0; a < NCCL_NUM_ALGORITHMS; ++a) {
    for (int p = 0; p < NCCL_NUM_PROTOCOLS; ++p) {
      if (!plugin::nccl_has(number, a, p)) continue;
      all.push_back(
          fmt::format("{}/{}", plugin::tuner_algorithms[static_cast<size_t>(a)], plugin::tuner_protocols[static_cast<size_t>(p)]));
    }
  }
  return all;
}

Variables nccl_variables(std::string_view choice, bool told) {
  Variables variables{{"GYRE_TUNER_FILE", std::nullopt},      {"GYRE_COLLECTIVES", std::nullopt},  {"GYRE_NCCL", std::nullopt},
                      {"NCCL_TUNER_PLUGIN", "none"},          {"NCCL_ALGO", std::nullopt},         {"NCCL_PROTO", std::nullopt},
                      {"NCCL_DEBUG", told ? "INFO" : "WARN"}, {"NCCL_DEBUG_SUBSYS", std::nullopt}, {"NCCL_DEBUG_FILE", std::nullopt}};
  if (told) variables["NCCL_DEBUG_SUBSYS"] = "TUNING";
  if (choice == nccls_own) return variables;
  const size_t slash = choice.find('/');
  variables["NCCL_ALGO"] = plain(choice.substr(0, slash));
  variables["NCCL_PROTO"] = plain(choice.substr(slash + 1));
  return variables;
}

Status check_env(const std::vector<std::string>& command) {
  for (const std::string& word : command)
    if (word != env_word && word.find(env_word) != word.npos)
      return Error{Code::invalid_argument,
                   fmt::format("{}: {} must be a word of its own; a shell hands it on by sh -c '...; \"$@\"' sh {} PROGRAM",
                               printable(word, 80), env_word, env_word)};
  return {};
}

std::vector<std::string> with_env(const std::vector<std::string>& command, const Variables& variables) {
  std::vector<std::string> words;
  for (const std::string& word : command) {
    if (word != env_word) {
      words.push_back(word);
      continue;
    }
    words.emplace_back("env");
    for (const auto& [name, value] : variables)
      if (!value) words.insert(words.end(), {"-u", name});
    for (const auto& [name, value] : variables)
      if (value) words.push_back(name + "=" + *value);
  }
  return words;
}

std::map<std::string, std::set<std::string>> nccl_choices_in(std::string_view log) {
  std::map<std::string, std::set<std::string>> ran;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    const std::string_view algorithm = word_behind("-> Algo ", line);
    const std::string_view protocol = word_behind(" proto ", line);
    const std::string_view function = word_behind("NCCL INFO ", line);  // "AllReduce:"
    if (algorithm.empty() || protocol.empty() || plain(function).empty()) continue;
    ran[word_for(function, plugin::tuner_collectives)].insert(word_for(algorithm, plugin::tuner_algorithms) + "/" +
                                                              word_for(protocol, plugin::tuner_protocols));
  }
  return ran;
}

std::string nccl_warning_in(std::string_view log) {
  constexpr std::string_view mark = " NCCL WARN ";
  const size_t at = log.rfind(mark);
  if (at == log.npos) return "";
  log.remove_prefix(at + mark.size());
  return std::string(log.substr(0, log.find_first_of("\r\n")));
}

std::string nccl_version_in(std::string_view log) {
  const std::string_view version = word_behind("NCCL version ", log);
  return version.empty() ? "unknown" : printable(version, 40);
}

}  // namespace gyre::perf
