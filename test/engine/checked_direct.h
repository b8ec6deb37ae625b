// A call of a communicator on buffers of a kind, looked at afterwards.
#pragma once
#include <fmt/format.h>

#include <string>

#include "engine/communicator.h"
#include "test/engine/heap_allocator.h"
#include "test/engine/job_memory.h"

namespace gyre::test {

/// What is wrong after the call on such a JobMemory; empty: nothing.
template <class Memory>
std::string checked_direct(engine::Communicator& communicator, const engine::Call& call, bool in_place) {
  Memory memory(call, communicator.size(), in_place);
  const engine::Buffers buffers = memory.buffers(communicator.rank());
  const Status status = communicator.run(call, buffers.input, buffers.output);
  const std::string wrong = status ? memory.wrong(communicator.rank()) : status.error().what;
  if (wrong.empty()) return {};
  return fmt::format("{} of {}, root {}{}: {}", name(call.collective), call.count, call.root, in_place ? ", in place" : "", wrong);
}

}  // namespace gyre::test
