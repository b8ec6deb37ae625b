#include "perf/caller.h"

#include <array>

namespace gyre::perf {

Status meet(engine::Communicator& communicator) {
  using Kind = engine::Transfer::Kind;
  const int ranks = communicator.size();
  const Rank rank = communicator.rank();
  std::array<uint8_t, 2> words{};
  if (!communicator.connections().missing.empty())  // and collectives have relays
    return communicator.all_reduce(&words[0], &words[1], 1, DataType::uint8, ReduceOp::max);
  for (int distance = 1; distance < ranks; distance *= 2) {
    const std::array transfers{engine::Transfer{Kind::send, (rank + distance) % ranks, &words[0], 1, DataType::uint8},
                               engine::Transfer{Kind::receive, (rank + ranks - distance) % ranks, &words[1], 1, DataType::uint8}};
    GYRE_TRY(communicator.exchange(transfers));
  }
  return {};
}

Status meet(std::span<const Caller> callers) {
  for (const Caller& caller : callers) GYRE_TRY(meet(caller.communicator()));
  return {};
}

}  // namespace gyre::perf
