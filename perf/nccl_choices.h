// What gyre would choose of NCCL's rings and trees, predicted and not measured on GPUs, as its tuner takes it (GYRE_TUNER_FILE): rules of
// one job, or a profile's section for jobs of one node to many.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "topo/nccl/model.h"

namespace gyre::perf {

/// For this job alone: plugin/tuner_rules.h.
std::string tuner_rules(const topo::nccl::Model&, const topo::nccl::Job&);

/// Where a profile's section is from.
struct ChoicesOrigin {
  std::string machine, date, command;
};
/// For the job, and for as many ranks per node on 1, 2, 4, … fewer nodes: plugin/tuner_profile.h.
Result<nlohmann::ordered_json> tuner_section(const topo::nccl::ModelConstants&, const topo::nccl::Machine&, const topo::nccl::Job&,
                                             const ChoicesOrigin&);

}  // namespace gyre::perf
