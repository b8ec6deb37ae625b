#include "transport/bootstrap_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "base/types.h"
#include "transport/bootstrap_text.h"

namespace gyre::transport::bootstrap {
namespace {

/// A call's words by key. Words without `=` have their place among those as key.
using Words = std::map<std::string, std::string>;

/// Ranks that say the same, in order of their lowest rank.
struct Group {
  std::string says;
  std::vector<Rank> ranks;
};

bool is_bare(const std::string& key) { return key.front() == '='; }

Words words_of(const Call& call, std::vector<std::string>& keys) {
  Words words;
  std::istringstream in(call.text);
  int bare = 0;
  for (std::string word; in >> word;) {
    const size_t equals = word.find('=');
    const bool named = equals != std::string::npos && equals > 0;
    const std::string key = named ? word.substr(0, equals) : fmt::format("={}", bare++);
    words[key] = word;
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  return words;
}

void add(std::vector<Group>& groups, std::string says, Rank rank) {
  for (Group& group : groups) {
    if (group.says != says) continue;
    group.ranks.push_back(rank);
    return;
  }
  groups.push_back({std::move(says), {rank}});
}

void append(std::string& list, const std::string& item, const char* between) {
  if (!list.empty() && !item.empty()) list += between;
  list += item;
}

std::string sentence(const Group& group, const char* one, const char* many) {
  return fmt::format("{} {} {}", ranks_text(group.ranks), group.ranks.size() == 1 ? one : many, group.says);
}

/// Ranks that are not in the call in question.
std::string elsewhere(uint64_t number, const std::vector<Standing>& ranks) {
  std::vector<Group> are, have;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const auto rank = static_cast<Rank>(r);
    if (ranks[r].left)
      add(have, "left", rank);
    else if (!ranks[r].call)
      add(are, "in no call", rank);
    else if (ranks[r].call->number != number)
      add(are, fmt::format("in call {} ({})", ranks[r].call->number, ranks[r].call->text), rank);
  }
  std::string text;
  for (const Group& group : are) append(text, sentence(group, "is", "are"), ", ");
  for (const Group& group : have) append(text, sentence(group, "has", "have"), ", ");
  return text;
}

/// The call in question, as the ranks in it describe it.
struct Compared {
  std::vector<Group> groups;  ///< by the words in which they differ; what most have comes last
  std::string common;         ///< the words that all have
};

Compared compare(uint64_t number, const std::vector<Standing>& ranks) {
  std::vector<std::string> keys;
  std::vector<std::pair<Rank, Words>> in;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const Standing& standing = ranks[r];
    if (standing.left || !standing.call || standing.call->number != number) continue;
    in.emplace_back(static_cast<Rank>(r), words_of(*standing.call, keys));
  }
  Compared result;
  std::vector<std::string> says(in.size());
  for (const std::string& key : keys) {
    const auto word = [&](size_t i) { return in[i].second.count(key) != 0 ? in[i].second.at(key) : std::string(); };
    bool same = true;
    for (size_t i = 1; i < in.size(); ++i) same = same && word(i) == word(0);
    if (same) append(result.common, word(0), " ");
    for (size_t i = 0; !same && i < in.size(); ++i)
      append(says[i], !word(i).empty() ? word(i) : is_bare(key) ? "one word less" : "no " + key, " ");
  }
  for (size_t i = 0; i < in.size(); ++i) add(result.groups, says[i], in[i].first);
  if (result.groups.size() == 1) {  // the same words, so only the hash can say that the plans differ
    result.groups.clear();
    for (const auto& [rank, words] : in) add(result.groups, fmt::format("plan={:#x}", ranks[static_cast<size_t>(rank)].call->plan), rank);
  }
  const auto most = std::max_element(result.groups.begin(), result.groups.end(),
                                     [](const Group& a, const Group& b) { return a.ranks.size() < b.ranks.size(); });
  if (most != result.groups.end()) std::rotate(most, most + 1, result.groups.end());
  return result;
}

}  // namespace

std::string compare_calls(uint64_t number, const std::vector<Standing>& ranks) {
  const Compared compared = compare(number, ranks);
  std::string text = elsewhere(number, ranks);
  if (compared.groups.size() <= 1) {
    const std::string call =
        compared.common.empty() ? fmt::format("call {}", number) : fmt::format("call {} ({})", number, compared.common);
    if (text.empty()) return fmt::format("a difference between calls was seen, but all ranks describe the same {}", call);
    for (const Group& group : compared.groups) append(text, sentence({"in " + call, group.ranks}, "is", "are"), ", ");
    return "calls differ: " + text;
  }
  std::string differences;
  for (const Group& group : compared.groups) append(differences, sentence(group, "has", "have"), ", ");
  append(differences, text, ", ");
  return fmt::format("calls differ: {} (call {}{}{})", differences, number, compared.common.empty() ? "" : ": ", compared.common);
}

}  // namespace gyre::transport::bootstrap
