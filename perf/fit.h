// From measured times to constants: those of a link and of a rank with which topo/cost.h comes nearest to the samples.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "perf/samples.h"
#include "topo/constants.h"
#include "topo/select.h"

namespace gyre::perf {

/// The machine of the constants on which a sample was taken: "host", "host_tcp", "host_verbs" or "host_ucx", with "_crowded" where ranks
/// share processors.
std::string machine_of(const Sample&);
/// The machine to which the sample's link between nodes and its times belong: the same, or "host_verbs" where verbs joined nodes only.
std::string network_machine_of(const Sample&);
/// What things cost there. Error: constants lack the machine.
Result<topo::Costs> costs_of(const Sample&, const topo::Constants&);
/// What was chosen from when the sample was taken; of costs as given.
topo::Query query_of(const Sample&, const topo::Costs&);
/// Microseconds by the price. Error: the sample's schedule does not exist.
Result<double> priced_us(const Sample&, const topo::Costs&, topo::Profiles&);
/// Microseconds by the simulator.
Result<double> simulated_us(const Sample&, const topo::Costs&);

/// |predicted - measured| / measured, of the middle sample.
double median_error(std::span<const double> predicted_us, std::span<const Sample> samples);

/// Costs for samples of one machine, looked for from `start`: of the local link and the rank; or, where all are of several nodes, of the
/// link between these. What counts is how far prices are from the samples, a schedule the more the nearer it is to the best of its size,
/// and what choosing by these prices would cost. Error: a sample's schedule does not exist.
Result<topo::Costs> fit(std::span<const Sample>, const topo::Costs& start);

}  // namespace gyre::perf
