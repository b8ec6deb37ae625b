// The real NCCL below gyre's functions. What NCCL calls of its own interface comes by gyre's names too, since these were loaded first;
// such calls are known by their thread, and go straight on.
#pragma once
#include <type_traits>

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

/// While there is one the thread is inside of NCCL.
class Inside {
 public:
  Inside() { ++depth; }
  ~Inside() { --depth; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool now() { return depth > 0; }

 private:
  static thread_local int depth;
};

/// `slot`: a pointer to member of Table.
template <auto slot, class... A>
auto call_real(A... arguments) {
  const Inside inside;
  return (real().*slot)(arguments...);
}

/// The same; where NCCL answers with an error of its own, gyre's is not the last any more.
template <auto slot, class... A>
ncclResult_t hear_real(A... arguments) {
  const char* const before = last_error();
  const ncclResult_t result = call_real<slot>(arguments...);
  if (result != ncclSuccess && result != ncclInProgress) forget_last_error(before);
  return result;
}

/// What stands in the table that programs call: NCCL's function …
template <auto slot>
struct Passed;
template <class R, class... A, R (*Table::*slot)(A...)>
struct Passed<slot> {
  static R call(A... arguments) {
    if constexpr (std::is_same_v<R, ncclResult_t>)
      return hear_real<slot>(arguments...);
    else
      return call_real<slot>(arguments...);
  }
};
/// … or gyre's before it.
template <auto slot, auto own>
struct Wrapped;
template <class R, class... A, R (*Table::*slot)(A...), auto own>
struct Wrapped<slot, own> {
  static R call(A... arguments) { return Inside::now() ? (real().*slot)(arguments...) : own(arguments...); }
};

}  // namespace gyre::plugin::nccl::wrap
