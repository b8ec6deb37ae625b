// Which ranks a communicator is made of, and that it works.
#pragma once
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/communicator.h"

namespace gyre::test {

/// The ranks of a communicator, in its order, by their ranks in another; or what went wrong.
inline std::string members(engine::Communicator& communicator, Rank rank_before) {
  std::vector<int32_t> all(static_cast<size_t>(communicator.size()));
  const int32_t own = rank_before;
  const Status gathered = communicator.run({Collective::all_gather, 1, DataType::int32, ReduceOp::sum, 0}, &own, all.data());
  if (!gathered) return gathered.error().what;
  std::vector<int32_t> ones(70'000, 1);
  const Status summed = communicator.all_reduce(ones.data(), ones.data(), ones.size(), DataType::int32, ReduceOp::sum);
  if (!summed) return summed.error().what;
  if (ones != std::vector<int32_t>(ones.size(), communicator.size())) return "wrong sum";
  return fmt::format("{}", fmt::join(all, " "));
}

inline std::string members(const Result<std::unique_ptr<engine::Communicator>>& made, Rank rank_before) {
  return !made ? made.error().what : *made == nullptr ? "none" : members(**made, rank_before);
}

}  // namespace gyre::test
