// NCCL's collectives, algorithms and protocols as users write them, by NCCL's numbers.
#pragma once
#include <array>
#include <string_view>

#include "plugin/abi/tuner.h"

namespace gyre::plugin {

inline constexpr std::array<std::string_view, NCCL_NUM_ALGORITHMS> tuner_algorithms{
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
inline constexpr std::array<std::string_view, 5> tuner_collectives{"broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce"};
inline constexpr std::array<std::string_view, NCCL_NUM_PROTOCOLS> tuner_protocols{"ll", "ll128", "simple"};
/// In place of an algorithm and protocol: NCCL's own choice.
inline constexpr std::string_view tuner_nccls_own = "nccl";
/// And that gyre runs the call, where it is beside NCCL (plugin/nccl/wrap_offer.h); a profile may say what NCCL runs where it is not.
inline constexpr std::string_view gyre_beside = "gyre";

/// What NCCL 2.28 has for a collective, on a machine with everything: NVLink SHARP, and a network that reduces.
constexpr bool nccl_has(ncclFunc_t collective, int algorithm, int protocol) {
  const bool simple = protocol == NCCL_PROTO_SIMPLE;
  if (algorithm == NCCL_ALGO_RING) return true;
  if (collective == ncclFuncAllReduce) return algorithm == NCCL_ALGO_TREE || (simple && algorithm != NCCL_ALGO_PAT);
  if (collective == ncclFuncBroadcast || collective == ncclFuncReduce) return false;
  return simple && (algorithm == NCCL_ALGO_PAT || algorithm == NCCL_ALGO_NVLS || algorithm == NCCL_ALGO_COLLNET_DIRECT);
}

}  // namespace gyre::plugin
