// The real NCCL below gyre's functions.
#pragma once
#include "plugin/nccl/errors.h"
#include "plugin/nccl/table.h"
#include "plugin/nccl/wrap_offer.h"

namespace gyre::plugin::nccl::wrap {

/// Once, before the first call.
void set_up(const Table& real, const Config&);
const Table& real();
const Config& config();
/// What each communicator has of it, wrap_job.h says.
const Offer& offer();

/// `slot`: a pointer to member of Table.
template <auto slot, class... A>
auto call_real(A... arguments) {
  return (real().*slot)(arguments...);
}

/// Calls NCCL. Where it answers with an error of its own, gyre's is not the last any more.
template <class Call>
ncclResult_t heard(const Call& call) {
  const char* const before = last_error();
  const ncclResult_t result = call();
  if (is_error(result)) forget_last_error(before);
  return result;
}
template <auto slot, class... A>
ncclResult_t hear_real(A... arguments) {
  return heard([&] { return call_real<slot>(arguments...); });
}

}  // namespace gyre::plugin::nccl::wrap
