// NCCL's own prediction, by the rule that its sources publish, with the defaults in constants.json: a latency and a bandwidth for each
// algorithm and protocol, and corrections. An evaluation of our own, of rings and trees only; what NCCL measured for it, and where, is not
// published. NVLink SHARP, CollNet and PAT are not in it.
#pragma once
#include <optional>
#include <utility>

#include "topo/nccl/model.h"

namespace gyre::topo::nccl {

class PublishedModel {
 public:
  /// The job must fill nodes alike, and have two ranks or more.
  PublishedModel(Published published, const Machine& machine, const Job& job)
      : published_(std::move(published)), machine_(machine), job_(job), channels_(machine.channels(job.nodes)) {}

  /// As Model::seconds, what a kernel's launch takes included.
  std::optional<double> seconds(Collective, const Entry&, uint64_t bytes) const;

  double latency(Collective, const Entry&) const;    ///< seconds
  double bandwidth(Collective, const Entry&) const;  ///< bytes of the call per second

 private:
  int hops(Collective) const;
  double ring_latency(Collective, Protocol) const;
  double bus_bandwidth(const Entry&) const;

  Published published_;
  Machine machine_;
  Job job_;
  Channels channels_;
};

}  // namespace gyre::topo::nccl
