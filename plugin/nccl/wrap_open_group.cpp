#include "plugin/nccl/wrap_open_group.h"

#include <algorithm>

#include "plugin/guard.h"
#include "plugin/nccl/wrap_real.h"

namespace gyre::plugin::nccl::wrap {

WrapGroup& open_group() {
  thread_local WrapGroup only;
  return only;
}

ncclResult_t forwarded(const Forward& forward) {
  const ncclResult_t result = heard(forward);
  if (is_error(result)) open_group().nccl_failed = open_group().depth > 0;
  return result;
}

ncclResult_t forwarded(const Issued& issued) {
  const Status lives = issued.comm->lives();
  return lives ? forwarded(issued.forward) : failed(issued.operation.name, lives.error());
}

void note_given(const std::shared_ptr<Beside>& comm, cudaStream_t stream, size_t declined) {
  auto& given = open_group().given;
  const auto known =
      std::find_if(given.rbegin(), given.rend(), [&](const ByNccl& one) { return one.comm == comm && one.stream == stream; });
  if (known == given.rend())
    given.push_back({comm, stream, declined});
  else
    known->declined += declined;
}

}  // namespace gyre::plugin::nccl::wrap
