#include "engine/passes.h"

#include <algorithm>
#include <cstdint>

namespace gyre::engine {

namespace {

// Of what is read of others before it is reduced, so that it is still in a cache then; each slice is a system call.
constexpr size_t most_room = 256 << 10;

}  // namespace

Status Passes::run(const DirectPlan& plan, const DirectForm& form, std::span<const RankMemory> memory, bool away,
                   std::span<std::byte> room) {
  const Call& call = plan.call;
  unread_ = form.reached.empty() ? rank_ : form.reached.front();
  const bool straight = plan.read && &form == &*plan.read;
  if (form.combines != nullptr && !plan.ordered && !straight) {
    for (const BoundPass& pass : form.passes) combine(pass, memory, *form.combines);
    return {};
  }
  const size_t element = size_of(call.type);
  if (reduces(call.collective)) combine_.bind(call.type, call.op, ranks_, 0, plan.ordered);
  Status status;
  for (const BoundPass& pass : form.passes) {
    if (straight && (pass.to.size() != 1 || pass.to.front().rank != rank_))
      status = Error{Code::internal, "a pass from attached memory to another's"};
    else if (pass.from.size() > 1 && straight)
      status = reduce_read(pass, element, memory, room.first(std::min(room.size(), most_room)));
    else if (pass.from.size() > 1)
      reduce(pass, memory);
    else if (const Place& from = pass.from.front(); memory[static_cast<size_t>(from.rank)].process != nullptr)
      status = read(from, 0, output(pass.to.front(), memory), pass.count * element, memory);
    else
      copy(pass, pass.count * element, memory, away);
    if (!status) break;
  }
  if (away) kernels::fence_away();  // before others hear that it is there
  return status;
}

// What reduce() comes to for two ranks, in a straight line: of a small call the rest would take longer than that.
void Passes::combine(const BoundPass& pass, Memory memory, const kernels::Arithmetic& arithmetic) {
  const std::byte* a = input(pass.from[0], memory);
  const std::byte* b = input(pass.from[1], memory);
  std::byte* to = output(pass.to[0], memory);
  if (pass.to.size() == 2)
    arithmetic.combine_both(to, output(pass.to[1], memory), a, b, pass.count);
  else
    arithmetic.combine(to, a, b, pass.count);
}

void Passes::reduce(const BoundPass& pass, Memory memory) {
  sources_.clear();
  sinks_.clear();
  for (const auto& from : pass.from) sources_.push_back(input(from, memory));
  for (const auto& to : pass.to) sinks_.push_back(output(to, memory));
  combine_.whole(sources_, sinks_, pass.count);
}

void Passes::copy(const BoundPass& pass, size_t bytes, Memory memory, bool away) {
  const std::byte* source = input(pass.from.front(), memory);
  for (const auto& to : pass.to) {
    std::byte* sink = output(to, memory);
    if (sink != source) (away ? kernels::copy_away : kernels::copy)(sink, source, bytes);
  }
}

// Slice by slice.
Status Passes::reduce_read(const BoundPass& pass, size_t element, Memory memory, std::span<std::byte> room) {
  const size_t each = room.size() / (pass.from.size() - 1) / 64 * 64 / element;  // elements
  if (each == 0) return Error{Code::internal, "no room for what a reduction reads"};
  sinks_.resize(1);
  for (size_t done = 0; done < pass.count; done += each) {
    const size_t count = std::min(each, pass.count - done);
    std::byte* free = room.data();
    sources_.clear();
    for (const Place& from : pass.from) {
      sources_.push_back(input(from, memory) + done * element);
      if (memory[static_cast<size_t>(from.rank)].process == nullptr) continue;
      GYRE_TRY(read(from, done * element, free, count * element, memory));
      sources_.back() = free;
      free += each * element;
    }
    sinks_.front() = output(pass.to.front(), memory) + done * element;
    combine_.whole(sources_, sinks_, count);
  }
  return {};
}

Status Passes::read(const Place& from, size_t offset, std::byte* to, size_t bytes, Memory memory) {
  unread_ = from.rank;
  const auto address = reinterpret_cast<uintptr_t>(input(from, memory) + offset);
  return memory[static_cast<size_t>(from.rank)].process->read(to, address, bytes);
}

}  // namespace gyre::engine
