#include "engine/direct.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/hash.h"
#include "engine/wait.h"

namespace gyre::engine {

using schedule::Layout;
using schedule::Pass;
using schedule::Spot;
using transport::Board;

namespace {

// Inputs up to this go by copy whether they could be mapped or not: a second meeting costs more.
constexpr size_t staged_at_best = 512;

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

std::vector<Rank> others(Rank rank, int ranks) {
  std::vector<Rank> all;
  for (Rank r = 0; r < ranks; ++r) {
    if (r != rank) all.push_back(r);
  }
  return all;
}

}  // namespace

Result<DirectForm> DirectForms::form(const Call& call, bool staged) {
  auto& proven = proven_[{call.collective, call.root, staged}];
  const Layout layout = engine::layout(call, ranks_);
  if (proven == nullptr) {
    const auto made = std::make_shared<schedule::Direct>(staged ? schedule::staged(layout) : schedule::mapped(layout));
    for (const bool in_place : {false, true}) {
      if (in_place && !layout.has_in_place()) continue;
      const std::string wrong = fault(*made, in_place);
      if (wrong.empty()) continue;
      return Error{Code::internal, fmt::format("{} between {} ranks, {}{}: {}", name(call.collective), ranks_, staged ? "staged" : "mapped",
                                               in_place ? ", in place" : "", wrong)};
    }
    proven = made;
  }
  DirectForm form{proven, chunk_bounds(call.count, proven->layout.chunks, std::max<size_t>(1, 64 / size_of(call.type))), {}, {}};
  form.reached = reached(proven->passes[static_cast<size_t>(rank_)], rank_);
  form.users = users(*proven, rank_);
  return form;
}

Result<DirectPlan> DirectForms::plan(const Call& any, bool may_stage, bool may_map) {
  DirectPlan plan{normal(any), {}, 0, {}, {}};
  const Layout layout = engine::layout(plan.call, ranks_);
  const size_t bytes = layout.input_blocks() * plan.call.count * size_of(plan.call.type);
  if (may_stage && bytes <= Board::slot_bytes) plan.staged = GYRE_TRY(form(plan.call, true));
  if (may_map && (!plan.staged || bytes > staged_at_best)) plan.mapped = GYRE_TRY(form(plan.call, false));
  plan.text = in_words(plan.call, plan.staged ? "one_shot" : "two_shot");
  plan.hash = mix(fnv1a(plan.text));
  return plan;
}

Direct::Direct(Rank rank, std::unique_ptr<Board> board, int spins)
    : rank_(rank),
      board_(std::move(board)),
      spins_(spins),
      others_(others(rank, board_->ranks())),
      memory_(board_->ranks()),
      ranks_(static_cast<size_t>(board_->ranks())) {}

void Direct::bind(const DirectPlan& plan, uint64_t call, uint64_t word, uint64_t hash, const std::string& text, const Buffers& buffers) {
  plan_ = &plan;
  form_ = nullptr;
  layout_ = (plan.staged ? plan.staged : plan.mapped)->schedule->layout;
  call_ = call;
  word_ = word;
  hash_ = hash;
  text_ = &text;
  ranks_[static_cast<size_t>(rank_)] = {static_cast<const std::byte*>(buffers.input), static_cast<std::byte*>(buffers.output), {}, {}};
  element_ = size_of(plan.call.type);
  combine_.bind(plan.call.type, plan.call.op, board_->ranks());
  ++sequence_;
  stage_ = Stage::show;
  awaited_ = plan.mapped ? &others_ : &plan.staged->reached;  // where there is a choice, all must see of all what they can
  next_ = 0;
  declined_ = false;
  shows_place_ = false;
  all_in_heaps_ = plan.mapped.has_value();
  any_in_heap_ = false;
  stranger_ = -1;
  wrong_.reset();
}

// Looks a few times, since what is awaited is usually there in less time than leaving takes.
template <class Ready>
bool Direct::soon(Ready&& ready) const {
  for (int i = 0; i < spins_; ++i) {
    if (ready()) return true;
    if (i > 16) relax_processor();
  }
  return ready();
}

Work::Moved Direct::move() {
  const Stage before = stage_;
  const size_t from = next_;
  if (stage_ == Stage::show && show()) stage_ = Stage::meet;
  if (stage_ == Stage::meet && meet() && decide()) {
    if (!declined_) work();
    board_->finish(sequence_);
    stage_ = shows_place_ && !declined_ ? Stage::leave : Stage::done;
    next_ = 0;
  }
  if (stage_ == Stage::leave && leave()) stage_ = Stage::done;
  return {stage_ != before || next_ != from, stage_ == Stage::done};
}

bool Direct::show() {
  Board::Line* line = nullptr;
  if (!soon([&] { return (line = board_->slot(sequence_)) != nullptr; })) return false;
  const size_t in = input_bytes(rank_);
  const std::byte* input = ranks_[static_cast<size_t>(rank_)].input;
  if (!plan_->mapped) {
    kernels::copy(in <= Board::line_bytes ? line->data : Board::behind(*line), input, in);
  } else {
    Shown shown;
    const size_t out = output_bytes(rank_);
    if (in != 0) shown.input = memory_.place(input, in);
    if (out != 0) shown.output = memory_.place(ranks_[static_cast<size_t>(rank_)].output, out);
    shows_place_ = (in == 0 || shown.input.segment != 0) && (out == 0 || shown.output.segment != 0);
    shown.in_heap = shows_place_ ? 1 : 0;
    all_in_heaps_ = any_in_heap_ = shows_place_;
    static_assert(sizeof(HeapNews) <= Board::slot_bytes && sizeof(Shown) <= Board::line_bytes);
    if (shows_place_) shown.has_news = memory_.tell(shown.input, shown.output, *reinterpret_cast<HeapNews*>(Board::behind(*line))) ? 1 : 0;
    if (!shows_place_ && plan_->staged) kernels::copy(Board::behind(*line), input, in);
    std::memcpy(line->data, &shown, sizeof shown);
  }
  board_->publish(sequence_, word_);
  return true;
}

bool Direct::meet() {
  for (; next_ < awaited_->size(); ++next_) {
    const Rank peer = (*awaited_)[next_];
    const Board::Line* line = nullptr;
    if (!soon([&] { return (line = board_->arrived(peer, sequence_)) != nullptr; })) return false;
    if (!look(peer, *line)) return false;
  }
  return true;
}

// False: nothing can be done with what the peer shows.
bool Direct::look(Rank peer, const Board::Line& line) {
  Memory& memory = ranks_[static_cast<size_t>(peer)];
  if (line.word != word_) {
    stranger_ = peer;
    return false;
  }
  const size_t in = input_bytes(peer);
  memory.input = !plan_->mapped && in <= Board::line_bytes ? line.data : Board::behind(line);
  if (!plan_->mapped) return true;
  Shown shown;
  std::memcpy(&shown, line.data, sizeof shown);
  all_in_heaps_ = all_in_heaps_ && shown.in_heap != 0;
  if (shown.in_heap == 0) return true;
  any_in_heap_ = true;
  if (shown.has_news != 0) memory_.hear(peer, *reinterpret_cast<const HeapNews*>(Board::behind(line)));
  memory.input_place = shown.input;
  memory.output_place = shown.output;
  return true;
}

// False: a peer's memory can't be reached.
bool Direct::decide() {
  form_ = all_in_heaps_ ? &*plan_->mapped : plan_->staged && !any_in_heap_ ? &*plan_->staged : nullptr;
  declined_ = form_ == nullptr;
  if (!all_in_heaps_) return true;
  awaited_ = &form_->users;
  for (const Rank peer : form_->reached) {
    const Status status = reach(peer);
    if (status) continue;
    wrong_ = status.error();
    stranger_ = peer;
    return false;
  }
  return true;
}

Status Direct::reach(Rank peer) {
  Memory& memory = ranks_[static_cast<size_t>(peer)];
  if (const size_t in = input_bytes(peer); in != 0) memory.input = GYRE_TRY(memory_.at(peer, memory.input_place, in));
  if (const size_t out = output_bytes(peer); out != 0) memory.output = GYRE_TRY(memory_.at(peer, memory.output_place, out));
  return {};
}

void Direct::work() {
  const uint32_t chunks = form_->schedule->layout.chunks;
  const auto& bounds = form_->bounds;
  const auto offset = [&](uint32_t chunk) { return (chunk / chunks * plan_->call.count + bounds[chunk % chunks]) * element_; };
  for (const Pass& pass : form_->schedule->passes[static_cast<size_t>(rank_)]) {
    const uint32_t piece = pass.to.front().chunk % chunks;
    const size_t count = bounds[piece + 1] - bounds[piece];
    if (count == 0) continue;
    sources_.clear();
    sinks_.clear();
    for (const Spot from : pass.from) sources_.push_back(ranks_[static_cast<size_t>(from.rank)].input + offset(from.chunk));
    for (const Spot to : pass.to) sinks_.push_back(ranks_[static_cast<size_t>(to.rank)].output + offset(to.chunk));
    if (sources_.size() > 1) {
      combine_.whole(sources_, sinks_, count);
      continue;
    }
    for (std::byte* sink : sinks_) {
      if (sink != sources_[0]) kernels::copy(sink, sources_[0], count * element_);
    }
  }
}

bool Direct::leave() {
  for (; next_ < awaited_->size(); ++next_) {
    if (!soon([&] { return board_->finished((*awaited_)[next_], sequence_); })) return false;
  }
  return true;
}

std::vector<Rank> Direct::awaited() const {
  if (stage_ == Stage::show) return others_;
  return next_ < awaited_->size() ? std::vector<Rank>{(*awaited_)[next_]} : std::vector<Rank>{};
}

std::string Direct::where() const {
  if (stage_ == Stage::show) return fmt::format("for all ranks to be done with the call {} before it", Board::slots);
  const auto peers = awaited();
  if (peers.empty()) return "to go on";
  if (stage_ == Stage::meet) return fmt::format("for rank {} to come to this call", peers[0]);
  return fmt::format("for rank {} to be done with this rank's memory", peers[0]);
}

}  // namespace gyre::engine
