#include "plugin/nccl/part.h"

#include <algorithm>
#include <span>

namespace gyre::plugin::nccl {
namespace {

void note_stream(const Operation& operation, Part& part) {
  part.context = operation.context;
  if (std::find(part.streams.begin(), part.streams.end(), operation.stream) == part.streams.end()) part.streams.push_back(operation.stream);
}

}  // namespace

// The stream may be held by then, and the copy must not be left there.
Status Bounce::copy(void* to, const void* from) const {
  GYRE_TRY(operation->comm->wait_for(operation->stream, operation->context));
  return cuda::copy(to, from, bytes(), operation->stream, operation->context);
}

void Part::make_room() {
  carried = carried && comm->on_gpu()->make_room(transfers);
  if (carried) return bounces.clear();
  for (Bounce& bounce : bounces) {
    bounce.memory = std::make_unique_for_overwrite<std::byte[]>(bounce.bytes());
    transfers[bounce.transfer].data = bounce.memory.get();
  }
}

Status Part::fill_bounces() const {
  for (const Bounce& bounce : bounces) {
    if (bounce.sends()) GYRE_TRY(bounce.fill());
  }
  return {};
}

Status Part::empty_bounces() const {
  for (const Bounce& bounce : bounces) {
    if (!bounce.sends()) GYRE_TRY(bounce.empty());
  }
  return {};
}

Status Part::join_streams() const {
  if (streams.size() < 2) return {};
  cuda::Mark mark(context);
  const cudaStream_t first = streams.front();
  const std::span others(streams.begin() + 1, streams.end());
  for (const cudaStream_t other : others) {
    GYRE_TRY(mark.set(other));
    GYRE_TRY(mark.before(first));
  }
  GYRE_TRY(mark.set(first));
  for (const cudaStream_t other : others) GYRE_TRY(mark.before(other));
  return {};
}

std::vector<Part> parts_of(const std::vector<Operation>& operations) {
  std::vector<Part> parts;
  for (const Operation& operation : operations) {
    auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.comm == operation.comm; });
    if (part == parts.end()) part = parts.insert(parts.end(), Part{operation.comm, operation.context, operation.name});
    if ((operation.on_gpu || operation.carried) && !operation.captured) note_stream(operation, *part);
    if (operation.call) {
      (operation.on_gpu ? part->on_gpu : part->on_host).push_back(&operation);
      continue;
    }
    part->carried = operation.carried;
    if (operation.on_gpu) part->bounces.push_back({&operation, part->transfers.size()});
    part->transfers.push_back(operation.transfer);
  }
  return parts;
}

}  // namespace gyre::plugin::nccl
