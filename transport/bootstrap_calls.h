// Which rank is in which call, and how the calls differ, in one line for a person. Pure: text in, text out.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/bootstrap.h"

namespace gyre::transport::bootstrap {

/// A call as its rank describes it; `text` is words, most of them key=value.
struct Call {
  uint64_t number = 0;
  uint64_t plan = 0;
  std::string text;
  std::vector<Pair> pairs{};

  /// Not one of the calls that all ranks make: number is that of the next one of those.
  bool among_some() const {
    for (const Pair& pair : pairs) {
      if (pair.awaited_send != 0 || pair.awaited_receive != 0) return true;
    }
    return false;
  }
};

/// What is known of a rank: its call, or that it is in none, or that it has left.
struct Standing {
  std::optional<Call> call;
  bool left = false;
};

/// "calls differ: rank 2 has count=999, ranks 0, 1, 3 have count=1000 (call 7: all_reduce type=float)". What most ranks have comes last;
/// at a tie what the lowest rank has. `number` is the call in question.
std::string compare_calls(uint64_t number, const std::vector<Standing>& ranks);

/// The same of a call that these ranks have made, one by rank or none: "calls differ: rank 0 has root=0, rank 1 has root=1 (call 7:
/// broadcast count=8)", or, where little is common, "calls differ: rank 0 had all_reduce count=8, rank 1 had gather count=8 root=0 (call
/// 7)".
std::string compare_made(uint64_t number, const std::vector<std::optional<Call>>& ranks);

}  // namespace gyre::transport::bootstrap
