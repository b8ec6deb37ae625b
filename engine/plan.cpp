#include "engine/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "kernels/canonical.h"
#include "schedule/fuse.h"
#include "topo/algorithms.h"
#include "transport/posted_fifo.h"

namespace gyre::engine {
namespace {

constexpr size_t most_slices = size_t{1} << 31;  // of a chunk: they are counted in 32 bits

std::string in_words(const Call& call, const Proven& proven) {
  std::string text = engine::in_words(call, proven.schedule.family);
  if (!proven.shape.grid.empty()) text += fmt::format(" grid={}", fmt::join(proven.shape.grid, "x"));
  if (proven.shape.ordered) text += " numerics=ordered";
  std::string orders;
  for (const schedule::RankOrder& order : proven.orders) orders += fmt::format("{}{}", orders.empty() ? "" : ";", fmt::join(order, ","));
  if (!orders.empty()) text += fmt::format(" order={:016x}", fnv1a(orders));
  std::string missing;
  for (const auto& [a, b] : proven.missing) missing += fmt::format("{}-{},", a, b);
  if (!missing.empty()) text += fmt::format(" missing={:016x}", fnv1a(missing));
  if (proven.schedule.channels != 1) text += fmt::format(" channels={}", proven.schedule.channels);
  return text;
}

// In place and not; the last proof.
Result<schedule::Proof> verify(schedule::Verifier& verifier, const Proven& proven, schedule::Mode mode, uint32_t credits) {
  const bool has_in_place = proven.schedule.layout().has_in_place();
  auto proof = verifier.run({credits, proven.slices, mode, false, proven.shape.ordered});
  if (proof && has_in_place) proof = verifier.run({credits, proven.slices, mode, true, proven.shape.ordered});
  return proof;
}

Result<std::shared_ptr<const Proven>> verified(Proven proven, const transport::Slots& slots) {
  using schedule::Mode;
  proven.slices = schedule::slices_under_way(slots.credits);
  proven.slots = slots;
  schedule::Verifier verifier(proven.schedule);
  GYRE_TRY(verify(verifier, proven, Mode::buffered, slots.credits));
  proven.proof = GYRE_TRY(verify(verifier, proven, Mode::posted, transport::PostedFifo::certain_credits(slots)));
  return std::make_shared<const Proven>(std::move(proven));
}

}  // namespace

std::string in_words(const Call& call, std::string_view algorithm) {
  std::string text = fmt::format("{} count={} type={}", name(call.collective), call.count, name(call.type));
  if (reduces(call.collective)) text += fmt::format(" op={}", name(call.op));
  if (rooted(call.collective)) text += fmt::format(" root={}", call.root);
  return text + fmt::format(" algorithm={}", algorithm);
}

std::vector<size_t> chunk_bounds(size_t count, uint32_t chunks, size_t unit) {
  const size_t units = count / unit + (count % unit != 0 ? 1 : 0);
  const size_t each = units / chunks;
  const size_t odd = units % chunks;
  std::vector<size_t> bounds;
  for (size_t i = 0; i <= chunks; ++i) bounds.push_back(std::min(count, (i * each + i * odd / chunks) * unit));
  return bounds;
}

Result<std::shared_ptr<const Proven>> prove(schedule::Schedule schedule, const transport::Slots& slots) {
  Proven proven;
  proven.schedule = std::move(schedule);
  return verified(std::move(proven), slots);
}

Result<std::shared_ptr<const Proven>> prove(std::string_view family, const topo::Shape& shape, const transport::Slots& slots,
                                            const std::vector<schedule::RankOrder>& orders, const schedule::RankPairs& missing) {
  Proven proven;
  proven.schedule = schedule::fuse(GYRE_TRY(topo::make(family, shape)));
  if (!orders.empty()) proven.schedule = GYRE_TRY(schedule::renamed(proven.schedule, orders));
  proven.schedule = GYRE_TRY(schedule::relayed(proven.schedule, missing));
  proven.shape = shape;
  proven.orders = orders;
  proven.missing = missing;
  return verified(std::move(proven), slots);
}

Plan::Plan(std::shared_ptr<const Proven> proven, const Call& call) : proven_(std::move(proven)), call_(call) {
  const size_t element = size_of(call.type);
  const size_t partial = ordered() ? kernels::partial_size(call.type) : element;
  // A part of a pre-multiplied sum travels multiplied, since only its rank knows by what, and as a partial sum: a product rounded to
  // the type would be a rounding more.
  const size_t part = call.op == ReduceOp::premul_sum ? partial : element;
  widths_ = {{part, partial, element}, partial};
}

// Where some messages are lent and others posted, lending's waits meet what posting leaves of the credits.
bool Plan::lendable() const {
  if (!proven_->lendable) {
    schedule::Verifier verifier(proven_->schedule);
    const auto proof = verify(verifier, *proven_, schedule::Mode::mapped, transport::PostedFifo::certain_credits(proven_->slots));
    proven_->lendable = static_cast<bool>(proof);
  }
  return *proven_->lendable;
}

size_t Plan::widest_message() const {
  return std::max(width(schedule::Form::part), proof().sends_partial ? width(schedule::Form::partial) : 0);
}

Result<Plan> Plan::make(std::shared_ptr<const Proven> proven, const Call& call, size_t slot_bytes, size_t unit_bytes) {
  Plan plan(std::move(proven), normal(call));
  plan.text_ = in_words(plan.call_, *plan.proven_);
  plan.hash_ = mix(fnv1a(plan.text_));
  const size_t element = size_of(call.type);
  const size_t wire = plan.widest_message();
  const size_t together = plan.schedule().longest_message();
  // A message carries one slice of each of its chunks and must fit a slot.
  const size_t most = slot_bytes / wire / together;
  if (most == 0) {
    return Error{Code::invalid_usage, fmt::format("{}: a message of {} chunks is at least {} bytes, GYRE_SLOT_BYTES is {}", plan.text_,
                                                  together, together * wire, slot_bytes)};
  }
  const size_t unit = schedule::fitting(std::max<size_t>(1, unit_bytes / element), most);
  plan.bounds_ = chunk_bounds(call.count, plan.schedule().chunks, unit);
  size_t longest = 0;
  for (size_t c = 0; c + 1 < plan.bounds_.size(); ++c) longest = std::max(longest, plan.bounds_[c + 1] - plan.bounds_[c]);
  if (longest / (most / unit * unit) >= most_slices) {
    return Error{Code::invalid_usage,
                 fmt::format("{}: a chunk of {} elements has too many slices, GYRE_SLOT_BYTES is {}", plan.text_, longest, slot_bytes)};
  }
  plan.cut_ = schedule::cut(longest, wire, static_cast<uint32_t>(together), {slot_bytes, plan.proven_->slices, unit * wire});
  return plan;
}

}  // namespace gyre::engine
