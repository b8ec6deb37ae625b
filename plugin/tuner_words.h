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

}  // namespace gyre::plugin
