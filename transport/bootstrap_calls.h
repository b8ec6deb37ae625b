// Which rank is in which call, and how the calls differ, in one line for a person. Pure: text in, text out.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gyre::transport::bootstrap {

/// A call as its rank describes it; `text` is words, most of them key=value.
struct Call {
  uint64_t number = 0;
  uint64_t plan = 0;
  std::string text;
};

/// What is known of a rank: its call, or that it is in none, or that it has left.
struct Standing {
  std::optional<Call> call;
  bool left = false;
};

/// "calls differ: rank 2 has count=999, ranks 0, 1, 3 have count=1000 (call 7: all_reduce type=float)". What most ranks have comes last;
/// at a tie what the lowest rank has. `number` is the call in question.
std::string compare_calls(uint64_t number, const std::vector<Standing>& ranks);

}  // namespace gyre::transport::bootstrap
