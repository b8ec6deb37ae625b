#include "perf/split.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace gyre::perf {
namespace {

using Operation = Split::Operation;

struct Word {
  std::string_view word;
  Operation operation;
};
constexpr std::array<Word, 8> operation_words{{{"AND", Operation::bit_and},
                                               {"&", Operation::bit_and},
                                               {"OR", Operation::bit_or},
                                               {"|", Operation::bit_or},
                                               {"MOD", Operation::modulo},
                                               {"%", Operation::modulo},
                                               {"DIV", Operation::divide},
                                               {"/", Operation::divide}}};

bool begins_with(std::string_view text, std::string_view prefix) {  // in either case
  return text.size() >= prefix.size() && strncasecmp(text.data(), prefix.data(), prefix.size()) == 0;
}

std::optional<int> number_to_base(std::string_view digits, int base) {
  int number = 0;
  const auto [at, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (error != std::errc() || at != digits.data() + digits.size() || number < 0) return std::nullopt;
  return number;
}

// Decimal, or what the prefix says.
std::optional<int> read_value(std::string_view text, int base = 10) {
  if (begins_with(text, "0x")) return number_to_base(text.substr(2), 16);
  if (base == 10 && begins_with(text, "0b")) return number_to_base(text.substr(2), 2);
  return number_to_base(text, base);
}

// Without the blanks before it.
std::string_view trimmed(std::string_view text) { return text.substr(std::min(text.find_first_not_of(' '), text.size())); }

}  // namespace

int Split::color(Rank rank) const {
  switch (operation) {
    case Operation::bit_and:
      return rank & value;
    case Operation::bit_or:
      return rank | value;
    case Operation::modulo:
      return rank % value;
    default:
      return rank / value;
  }
}

Result<std::optional<Split>> wanted_split(const transport::Environment& environment) {
  const auto mask = environment.get("NCCL_TESTS_SPLIT_MASK");
  if (mask && !mask->empty()) {
    const std::string given = "NCCL_TESTS_SPLIT_MASK=" + *mask;
    const auto value = read_value(*mask, 16);
    if (!value) return Error{Code::invalid_argument, given + ": not a hexadecimal number from 0 to 7fffffff"};
    return std::optional(Split{Operation::bit_and, *value, given});
  }
  const auto split = environment.get("NCCL_TESTS_SPLIT");
  if (!split || split->empty()) return std::optional<Split>();
  const std::string given = "NCCL_TESTS_SPLIT=" + *split;
  const auto* const found = std::ranges::find_if(operation_words, [&](const Word& each) { return begins_with(*split, each.word); });
  if (found == operation_words.end()) return Error{Code::invalid_argument, given + ": not AND, OR, MOD or DIV, or & | % /, and a number"};
  const auto value = read_value(trimmed(std::string_view(*split).substr(found->word.size())));
  const bool divides = found->operation == Operation::modulo || found->operation == Operation::divide;
  const int least = divides ? 1 : 0;
  if (!value || *value < least) {
    return Error{Code::invalid_argument,
                 fmt::format("{}: {} takes a number from {} to 2147483647, such as 8, 0x8 or 0b1000", given, found->word, least)};
  }
  return std::optional(Split{found->operation, *value, given});
}

Groups groups_of(const Split& split, int ranks) {
  Groups groups;
  for (Rank rank = 0; rank < ranks; ++rank) groups[split.color(rank)].push_back(rank);
  return groups;
}

Status check_split(const SweepOptions& options, const Split& split, const Groups& groups) {
  const auto wrong = [&](const std::string& why) { return Error{Code::invalid_argument, fmt::format("{}: {}", split.given, why)}; };
  if (options.limit_seconds) return wrong("with --time-limit groups would end at different rows");
  const auto [least, most] = std::ranges::minmax_element(groups, {}, [](const auto& group) { return group.second.size(); });
  if (!options.root && least->second.size() != most->second.size())
    return wrong(fmt::format("with -r all groups of {} and {} ranks would have different rows", least->second.size(), most->second.size()));
  if (const auto roots = roots_of(options, static_cast<int>(least->second.size())); !roots) return wrong(roots.error().what);
  return {};
}

}  // namespace gyre::perf
