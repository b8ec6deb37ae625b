// Groups of ranks that run a sweep at the same time, each by itself, as nccl-tests' environment asks for them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "perf/sweep.h"
#include "transport/launch.h"

namespace gyre::perf {

/// How a rank's number gives the color of its group.
struct Split {
  enum class Operation : uint8_t { bit_and, bit_or, modulo, divide };

  Operation operation = Operation::bit_and;
  int value = 0;
  std::string given;  ///< "NCCL_TESTS_SPLIT=MOD 2"

  int color(Rank) const;
};
/// NCCL_TESTS_SPLIT_MASK, or NCCL_TESTS_SPLIT. Error: which variable, and what it may be.
Result<std::optional<Split>> wanted_split(const transport::Environment&);

/// Ranks by color, ascending.
using Groups = std::map<int, std::vector<Rank>>;
Groups groups_of(const Split&, int ranks);

/// Groups begin each row together. Error: they would not have the same rows, or one has no such root.
Status check_split(const SweepOptions&, const Split&, const Groups&);

}  // namespace gyre::perf
