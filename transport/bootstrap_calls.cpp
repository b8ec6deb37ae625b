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

void put_most_last(std::vector<Group>& groups) {
  const auto most =
      std::max_element(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.ranks.size() < b.ranks.size(); });
  if (most != groups.end()) std::rotate(most, most + 1, groups.end());
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
  put_most_last(result.groups);
  return result;
}

std::string in_words(const Compared& compared, uint64_t number, const std::string& elsewhere) {
  std::string differences;
  for (const Group& group : compared.groups) append(differences, sentence(group, "has", "have"), ", ");
  append(differences, elsewhere, ", ");
  return fmt::format("calls differ: {} (call {}{}{})", differences, number, compared.common.empty() ? "" : ": ", compared.common);
}

std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }

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
  return in_words(compared, number, text);
}

std::string compare_made(uint64_t number, const std::vector<std::optional<Call>>& ranks) {
  std::vector<Standing> standings;
  std::vector<Group> whole, first;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    standings.push_back({ranks[rank], false});
    if (!ranks[rank]) continue;
    add(whole, ranks[rank]->text, static_cast<Rank>(rank));
    add(first, first_word(ranks[rank]->text), static_cast<Rank>(rank));
  }
  if (first.size() == 1) return in_words(compare(number, standings), number, {});
  put_most_last(whole);
  std::string differences;
  for (const Group& group : whole) append(differences, sentence(group, "had", "had"), ", ");
  return fmt::format("calls differ: {} (call {})", differences, number);
}

}  // namespace gyre::transport::bootstrap
