#include "engine/direct_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/hash.h"
#include "engine/plan.h"
#include "transport/board.h"

namespace gyre::engine {

using schedule::Layout;
using schedule::Pass;
using schedule::Spot;

namespace {

bool within(size_t bytes, size_t most) { return most == 0 || bytes <= most; }

// Whose passes read or write this rank's memory, itself left out.
std::vector<Rank> users(const schedule::Direct& direct, Rank rank) {
  std::vector<Rank> found;
  for (Rank by = 0; by < direct.layout.ranks; ++by) {
    const auto touches = [&](const std::vector<Spot>& spots) {
      return std::any_of(spots.begin(), spots.end(), [&](Spot s) { return s.rank == rank; });
    };
    const auto& passes = direct.passes[static_cast<size_t>(by)];
    const bool uses = std::any_of(passes.begin(), passes.end(), [&](const Pass& p) { return touches(p.from) || touches(p.to); });
    if (uses && by != rank) found.push_back(by);
  }
  return found;
}

std::vector<Rank> reached(const std::vector<Pass>& passes, Rank rank) {
  std::set<Rank> found;
  for (const Pass& pass : passes) {
    for (const Spot from : pass.from) found.insert(from.rank);
    for (const Spot to : pass.to) found.insert(to.rank);
  }
  found.erase(rank);
  return {found.begin(), found.end()};
}

// Of a block's chunks, in elements.
std::vector<size_t> bounds_of(const schedule::Direct& direct, const Call& call) {
  return chunk_bounds(call.count, direct.layout.chunks, std::max<size_t>(1, 64 / size_of(call.type)));
}

// Where these chunks of a rank's buffer are, and where on a bounce buffer.
std::vector<Bounced::Range> ranges_of(const std::set<uint32_t>& chunks, const schedule::Direct& direct, const Call& call,
                                      size_t own_stride) {
  const uint32_t each = direct.layout.chunks;
  const size_t element = size_of(call.type);
  const std::vector<size_t> bounds = bounds_of(direct, call);
  std::vector<Bounced::Range> ranges;
  for (const uint32_t chunk : chunks) {
    const size_t block = chunk / each, begin = bounds[chunk % each], bytes = (bounds[chunk % each + 1] - begin) * element;
    const Bounced::Range next{(block * own_stride + begin) * element, (block * call.count + begin) * element, bytes};
    const auto follows = [&](const Bounced::Range& last) {
      return last.own + last.bytes == next.own && last.bounced + last.bytes == next.bounced;
    };
    if (!ranges.empty() && follows(ranges.back()))
      ranges.back().bytes += bytes;
    else if (bytes != 0)
      ranges.push_back(next);
  }
  return ranges;
}

const kernels::Arithmetic* combines_two(const std::vector<BoundPass>& passes, const Call& call) {
  const kernels::Arithmetic& arithmetic = kernels::arithmetic(call.type, call.op);
  const bool as_they_are = reduces(call.collective) && arithmetic.scale == nullptr && arithmetic.divide == nullptr;
  const auto of_two = [](const BoundPass& pass) { return pass.from.size() == 2 && pass.to.size() <= 2; };
  return as_they_are && std::all_of(passes.begin(), passes.end(), of_two) ? &arithmetic : nullptr;
}

}  // namespace

std::vector<BoundPass> bound_passes(const schedule::Direct& direct, Rank rank, const Call& call, size_t own_stride) {
  const uint32_t chunks = direct.layout.chunks;
  const size_t element = size_of(call.type);
  const std::vector<size_t> bounds = bounds_of(direct, call);
  const auto place = [&](Spot spot) {
    const size_t stride = spot.rank == rank && own_stride != 0 ? own_stride : call.count;
    return BoundPass::Place{spot.rank, (spot.chunk / chunks * stride + bounds[spot.chunk % chunks]) * element};
  };
  std::vector<BoundPass> all;
  for (const Pass& pass : direct.passes[static_cast<size_t>(rank)]) {
    const uint32_t piece = pass.to.front().chunk % chunks;
    BoundPass& made = all.emplace_back();
    made.count = bounds[piece + 1] - bounds[piece];
    std::transform(pass.from.begin(), pass.from.end(), std::back_inserter(made.from), place);
    std::transform(pass.to.begin(), pass.to.end(), std::back_inserter(made.to), place);
    if (made.count == 0) all.pop_back();
  }
  return all;
}

const DirectForm* DirectPlan::form(BufferKind kind, bool straight) const {
  if (mapped && kind == BufferKind::shared_heap) return &*mapped;
  if (read && straight) return &*read;
  if (staged) return &*staged;
  return bounced ? &*mapped : nullptr;
}

topo::BufferAccess DirectPlan::access(const DirectForm& form, BufferKind kind) const {
  if (read && &form == &*read) return topo::BufferAccess::attached;
  const bool on_copies = bounced && kind == BufferKind::ordinary && !form.schedule->staged;
  return on_copies ? topo::BufferAccess::bounced : topo::BufferAccess::heap;
}

Result<DirectForm> DirectForms::form(const Call& call, Kind kind, size_t own_stride) {
  struct Maker {
    const char* name;
    schedule::Direct (*make)(Layout);
  };
  static constexpr Maker makers[] = {{"staged", schedule::staged}, {"mapped", schedule::mapped}, {"read", schedule::read}};
  const Maker& maker = makers[static_cast<size_t>(kind)];
  auto& proven = proven_[{call.collective, call.root, kind}];
  const Layout layout = engine::layout(call, ranks_);
  if (proven == nullptr) {
    const auto made = std::make_shared<schedule::Direct>(maker.make(layout));
    for (const bool in_place : {false, true}) {
      if (in_place && !layout.has_in_place()) continue;
      const std::string wrong = fault(*made, in_place);
      if (wrong.empty()) continue;
      return Error{Code::internal, fmt::format("{} between {} ranks, {}{}: {}", name(call.collective), ranks_, maker.name,
                                               in_place ? ", in place" : "", wrong)};
    }
    proven = made;
  }
  std::vector<BoundPass> passes = bound_passes(*proven, rank_, call, own_stride);
  const kernels::Arithmetic* combines = combines_two(passes, call);
  return DirectForm{proven, std::move(passes), reached(proven->passes[static_cast<size_t>(rank_)], rank_), users(*proven, rank_), combines};
}

// Two pieces are under way, so that one is copied while others are still busy with the one before.
Result<Bounced> DirectForms::bounced(const Call& call) {
  constexpr size_t line = 64;
  const size_t most = bounce_bytes_ / 2 / engine::layout(call, ranks_).input_blocks() / line * line / size_of(call.type);
  Bounced out{std::min(call.count, most), (call.count + most - 1) / most, {}, {}};
  Call part = call;
  part.count = out.count;
  out.each = GYRE_TRY(piece(part, call.count));
  part.count = call.count - (out.pieces - 1) * out.count;
  out.last = GYRE_TRY(piece(part, call.count));
  return out;
}

Result<Bounced::Piece> DirectForms::piece(const Call& part, size_t own_stride) {
  DirectForm made = GYRE_TRY(form(part, Kind::mapped, own_stride));
  const schedule::Direct& direct = *made.schedule;
  const auto [read, written] = touched_by_others(direct, rank_);
  auto shown = ranges_of(read, direct, part, own_stride), taken = ranges_of(written, direct, part, own_stride);
  return Bounced::Piece{std::move(made), std::move(shown), std::move(taken)};
}

// Where ranks share processors, meeting for each piece takes longer than messages do; between very many a piece has little of each block.
bool DirectForms::may_bounce(const Call& call, size_t input_bytes) const {
  constexpr size_t least_piece = 4096;
  if (rooted(call.collective) || bounce_bytes_ / 2 / engine::layout(call, ranks_).input_blocks() < least_piece) return false;
  if (call.collective == Collective::reduce_scatter) return bounds_.bounced_scatters && within(input_bytes, bounds_.bounced_most_scattered);
  return call.collective != Collective::all_to_all || bounds_.bounced_all_to_all;
}

// What is not here is as fast or faster by messages, or by copies shown on the board where `shows`.
bool DirectForms::attaches(const Call& call, bool shows) const {
  // What a reduction reads, its rank has in its bounce buffer until it is reduced.
  const bool has_room =
      !reduces(call.collective) || (call.collective == Collective::reduce_scatter && bounds_.attached_reduces && bounce_bytes_ > 0);
  if (!attached_ || !has_room || !bounds_.attaches(ranks_)) return false;
  const bool by_root = rooted(call.collective);
  if (shows && (by_root || !bounds_.attached_shown)) return false;
  const size_t block = call.count * size_of(call.type);
  const bool reads_one = call.collective == Collective::broadcast || call.collective == Collective::scatter;
  return block >= (by_root ? bounds_.attached_least_rooted : bounds_.attached_least) &&
         (!by_root || within(block, bounds_.attached_most_rooted)) &&
         within(block, bounds_.attached_most_read / static_cast<size_t>(reads_one ? 1 : ranks_));
}

// Bytes of input beyond which not all ranks read all inputs, where these can be bounced: where processors are not as near each other as two
// threads of a core, reading what is shown takes up to three times as long, and where they are, 0.7 of the time at best. Ranks that share
// processors meet twice to bounce, which outweighs what they sum up to some number of elements.
size_t DirectForms::most_read_by_all(const Call& call) const {
  const size_t bytes = bounds_.read_by_all_elements * size_of(call.type);
  return std::min(transport::Board::slot_bytes, std::clamp(bytes, bounds_.read_by_all_least, bounds_.read_by_all_most));
}

// Bytes that a rank shows to others, up to which that is a copy even where they could be mapped. Where they could, all meet: whoever is
// awaited by others and awaits nobody, as a root, would wait for them.
size_t DirectForms::staged_at_best(Collective collective) const { return rooted(collective) ? bounds_.shown_rooted : bounds_.shown; }

Result<DirectPlan> DirectForms::plan(const Call& any, bool ordered, bool may_stage, bool may_map) {
  DirectPlan plan{.call = normal(any), .ordered = ordered};
  for (Rank r = 0; r < ranks_; ++r) plan.extents.push_back(extent(plan.call, r, ranks_));
  const Layout layout = engine::layout(plan.call, ranks_);
  const size_t block = plan.call.count * size_of(plan.call.type);
  const size_t bytes = layout.input_blocks() * block;
  if (layout.input_blocks() > 1) plan.unread_bytes = block;
  const bool bounces = may_map && may_bounce(plan.call, bytes);
  const bool shares = bounces && plan.call.collective == Collective::all_reduce;
  const size_t most_staged = shares ? most_read_by_all(plan.call) : transport::Board::slot_bytes;
  const bool shows = may_stage && bytes <= most_staged;
  if (may_map && attaches(plan.call, shows)) plan.read = GYRE_TRY(form(plan.call, Kind::read));
  plan.contested = plan.read && may_stage;
  if (shows) plan.staged = GYRE_TRY(form(plan.call, Kind::staged));
  if (may_map && (!plan.staged || plan.read || bytes - plan.unread_bytes > staged_at_best(plan.call.collective)))
    plan.mapped = GYRE_TRY(form(plan.call, Kind::mapped));
  if (!plan.staged && bounces && plan.call.count > 0) plan.bounced = GYRE_TRY(bounced(plan.call));
  plan.text = in_words(plan.call, plan.staged && !plan.read ? "one_shot" : "two_shot");
  plan.hash = mix(fnv1a(plan.text));
  return plan;
}

}  // namespace gyre::engine
