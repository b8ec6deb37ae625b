#include "engine/direct.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "engine/wait.h"

namespace gyre::engine {

using transport::Board;

namespace {

std::vector<Rank> others(Rank rank, int ranks) {
  std::vector<Rank> all;
  for (Rank r = 0; r < ranks; ++r) {
    if (r != rank) all.push_back(r);
  }
  return all;
}

}  // namespace

Direct::Direct(Rank rank, std::unique_ptr<Board> board, int spins, Away away)
    : rank_(rank),
      board_(std::move(board)),
      spins_(spins),
      away_(away),
      others_(others(rank, board_->ranks())),
      memory_(board_->ranks()),
      passes_(rank, board_->ranks()),
      shown_(static_cast<size_t>(board_->ranks())),
      reachable_(static_cast<size_t>(board_->ranks())),
      settled_(board_->ranks()) {}

void Direct::bind(const DirectPlan& plan, const Identity& call, const Buffers& buffers, Contest* contest) {
  plan_ = &plan;
  form_ = nullptr;
  contest_ = contest;
  straight_ = plan.read && (contest == nullptr || contest->straight());
  stages_ = plan.staged && !straight_;
  call_ = call;
  own_ = {static_cast<const std::byte*>(buffers.input), static_cast<std::byte*>(buffers.output), nullptr};
  reachable_[static_cast<size_t>(rank_)] = {own_.input, own_.output, nullptr};
  piece_ = 0;
  ++sequence_;
  const bool shows = plan.mapped || !plan.staged->users.empty();  // else nobody looks
  stage_ = shows ? Stage::show : Stage::meet;
  awaited_ = plan.mapped ? &others_ : &plan.staged->reached;  // where there is a choice, all must see of all what they can
  next_ = 0;
  declined_ = bounced_ = attached_ = refuses_ = false;
  all_in_heaps_ = plan.mapped.has_value();
  any_in_heap_ = any_unreadable_ = any_in_place_ = late_ = false;
  stranger_ = -1;
  wrong_.reset();
  before_ = plan.mapped ? settled_.find(plan.hash, rank_, own_) : nullptr;
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
  if (wrong_) return {};  // what was done in place is not done again
  if (!plan_->mapped) return move_staged();
  const auto before = std::tuple(stage_, next_, piece_);
  if (stage_ == Stage::show && show()) stage_ = Stage::meet;
  if (stage_ == Stage::meet && meet() && !shows_late() && decide()) {
    const bool ends = declined_ || form_->schedule->staged;
    if (declined_)
      board_->finish(sequence_);
    else if (ends)
      board_->finish_staged(sequence_, extent(plan_->call.root).input_bytes);
    else
      board_->finish_reading(sequence_, refuses_);
    if (bounced_ && piece_ + 1 < plan_->bounced->pieces) {  // while others may be busy with this one
      show_piece(piece_ + 1);
      board_->publish(sequence_ + 1, call_.word);
    }
    stage_ = ends ? Stage::done : Stage::leave;
    next_ = 0;
  }
  if (stage_ == Stage::leave && leave()) {
    declined_ = refuses_;
    for (const Rank peer : *awaited_) declined_ = declined_ || board_->refused(peer, sequence_);
    if (declined_ && contest_ != nullptr) contest_->refuse();
    stage_ = bounced_ && !take_piece() ? Stage::meet : Stage::done;
    next_ = 0;
  }
  if (stage_ == Stage::done) plan_ = nullptr;  // which may end now
  return {std::tuple(stage_, next_, piece_) != before, stage_ == Stage::done};
}

// The same where there is nothing to choose, in a straight line: of a small call this is what takes its time.
Work::Moved Direct::move_staged() {
  const bool was_shown = stage_ == Stage::meet;
  if (!was_shown && !show()) return {false, false};
  stage_ = Stage::meet;
  const size_t had_come = next_;
  if (!meet()) return {!was_shown || next_ != had_come, false};
  std::ignore = passes_.run(*plan_, *plan_->staged, reachable_, copies_away());  // from copies, which can't fail
  board_->finish_staged(sequence_, extent(plan_->call.root).input_bytes);
  stage_ = Stage::done;
  plan_ = nullptr;  // which may end now
  return {true, true};
}

bool Direct::show() {
  const size_t in = extent(rank_).input_bytes;
  const size_t beside = !plan_->mapped ? in : stages_ ? std::max(in, sizeof(HeapNews)) : sizeof(HeapNews);
  Board::Line* line = nullptr;
  if (!soon([&] { return (line = board_->line(sequence_, beside)) != nullptr; })) return false;
  if (!plan_->mapped) {
    show_input(in <= Board::line_bytes ? line->data : board_->beside(rank_, sequence_, in));
  } else {
    show_places(*line);
  }
  if (plan_->mapped) kernels::fence_away();  // what the user's program may have written past the caches, and others will read
  board_->publish(sequence_, call_.word);
  board_->claim(sequence_ + 2, plan_->mapped ? 0 : in);  // for the next one there is no time
  return true;
}

// All that other ranks read of it.
void Direct::show_input(std::byte* to) const {
  const size_t bytes = extent(rank_).input_bytes;
  const size_t own = plan_->unread_bytes;
  if (own == 0 || bytes <= Board::line_bytes) return kernels::copy(to, own_.input, bytes);
  const size_t begin = static_cast<size_t>(rank_) * own;
  const size_t end = begin + own;
  kernels::copy(to, own_.input, begin);
  kernels::copy(to + end, own_.input + end, bytes - end);
}

void Direct::show_places(Board::Line& line) {
  const size_t in = extent(rank_).input_bytes;
  const size_t out = extent(rank_).output_bytes;
  const RankMemory& own = reachable_[static_cast<size_t>(rank_)];
  if (before_ != nullptr) {
    all_in_heaps_ = any_in_heap_ = true;
    std::memcpy(line.data, &before_->shown[static_cast<size_t>(rank_)], sizeof(Shown));
    return;
  }
  Shown& shown = shown_[static_cast<size_t>(rank_)];
  shown = {reinterpret_cast<uintptr_t>(own.input), reinterpret_cast<uintptr_t>(own.output)};
  if (contest_ != nullptr) shown.saved = contest_->saved();
  if (in != 0) shown.input_segment = memory_.segment(own.input, in);
  if (out != 0) shown.output_segment = memory_.segment(own.output, out);
  all_in_heaps_ = any_in_heap_ = (in == 0 || shown.input_segment != 0) && (out == 0 || shown.output_segment != 0);
  shown.in_heap = all_in_heaps_ ? 1 : 0;
  if (straight_ && reduces(plan_->call.collective) && !all_in_heaps_) {
    any_unreadable_ = !may_be_read(own.input, in);
    any_in_place_ = own.output + out > own.input && own.output < own.input + in;
  }
  shown.unreadable = any_unreadable_ ? 1 : 0;
  shown.in_place = any_in_place_ ? 1 : 0;
  static_assert(sizeof(HeapNews) <= Board::room_bytes && sizeof(Shown) <= Board::line_bytes);
  auto* news = reinterpret_cast<HeapNews*>(board_->beside(rank_, sequence_, sizeof(HeapNews)));  // where no copy is shown
  if (all_in_heaps_) {
    shown.has_news = memory_.tell(shown.input_segment, shown.output_segment, *news) ? 1 : 0;
  } else if (!stages_) {
    shown.has_news = memory_.tell(0, 0, *news) ? 1 : 0;
    if (plan_->bounced && !straight_) show_piece(0);
  } else {
    show_input(board_->beside(rank_, sequence_, in));
  }
  std::memcpy(line.data, &shown, sizeof shown);
}

bool Direct::meet() {
  // The one that is awaited then awaits nobody, and has often shown its next call, too.
  const bool runs_ahead = !plan_->mapped && rooted(plan_->call.collective) && awaited_->size() == 1;
  for (; next_ < awaited_->size(); ++next_) {
    const Rank peer = (*awaited_)[next_];
    const Board::Line* line = nullptr;
    if (!soon([&] { return (line = board_->arrived(peer, sequence_)) != nullptr; })) return false;
    if (!look(peer, *line)) return false;
    if (runs_ahead) board_->expect(peer, sequence_ + 1);
  }
  return true;
}

// False: it shows another call.
bool Direct::look(Rank peer, const Board::Line& line) {
  const auto index = static_cast<size_t>(peer);
  if (line.word != call_.word) {
    stranger_ = peer;
    return false;
  }
  if (before_ != nullptr) {
    if (before_->shown[index].is(line.data)) return true;
    shown_ = std::exchange(before_, nullptr)->shown;  // of this rank, and of peers that have come
  }
  const size_t in = extent(peer).input_bytes;
  reachable_[index] = {!plan_->mapped && in <= Board::line_bytes ? line.data : board_->beside(peer, sequence_, in), nullptr, nullptr};
  if (!plan_->mapped || piece_ > 0 || late_) return true;
  Shown& shown = shown_[index];
  std::memcpy(&shown, line.data, sizeof shown);
  all_in_heaps_ = all_in_heaps_ && shown.in_heap != 0;
  any_in_heap_ = any_in_heap_ || shown.in_heap != 0;
  any_unreadable_ = any_unreadable_ || shown.unreadable != 0;
  any_in_place_ = any_in_place_ || shown.in_place != 0;
  if (shown.has_news != 0) {
    settled_.forget();
    memory_.hear(peer, *reinterpret_cast<const HeapNews*>(board_->beside(peer, sequence_, sizeof(HeapNews))));
  }
  return true;
}

// True: all have met, the input of one can't be read straight, and all have begun to show their first piece in a line of its own.
bool Direct::shows_late() {
  if (piece_ > 0 || late_ || !any_unreadable_ || any_in_heap_) return false;
  if (contest_ != nullptr) begin_contest();
  if (contest_ != nullptr) contest_->refuse();
  late_ = bounced_ = true;
  form_ = &*plan_->mapped;
  show_piece(0);
  board_->publish(sequence_ + 1, call_.word);
  board_->finish_reading(sequence_++, false);
  next_ = 0;
  return true;
}

// False: a peer's memory can't be mapped.
bool Direct::decide() {
  if (piece_ > 0 || late_) return run_piece();
  if (before_ != nullptr) {
    form_ = &*plan_->mapped;
    return run_passes(before_->memory);
  }
  // Messages may reduce to other bits than a rank does by itself; whether they do is not to hang on what calls find.
  const bool by_messages = !all_in_heaps_ && any_in_heap_ && reduces(plan_->call.collective);
  if (!all_in_heaps_ && !by_messages && contest_ != nullptr) begin_contest();
  attached_ = !all_in_heaps_ && !by_messages && straight_;
  // Where only some lie in heaps, those have shown no copy.
  const bool shown = all_in_heaps_ || attached_ || !any_in_heap_;
  form_ = shown ? plan_->form(all_in_heaps_ ? BufferKind::shared_heap : BufferKind::ordinary, straight_) : nullptr;
  declined_ = form_ == nullptr;
  bounced_ = !declined_ && !all_in_heaps_ && !attached_ && !form_->schedule->staged;
  if (attached_) attach();
  if (declined_ || (all_in_heaps_ && !reach())) return declined_;
  if (all_in_heaps_) settled_.keep(plan_->hash, shown_, reachable_);
  if (!bounced_) return run_passes(reachable_);
  awaited_ = &form_->users;
  return run_piece();
}

bool Direct::run_passes(const std::vector<RankMemory>& memory) {
  awaited_ = attached_ ? &others_ : &form_->users;  // where one can't read, all must hear of it
  const std::span<std::byte> room(attached_ ? board_->bounce(rank_) : nullptr, attached_ ? board_->bounce_bytes() : 0);
  const Status read = passes_.run(*plan_, *form_, memory, copies_away(), room);
  refuses_ = !read;
  if (!read && reduces(plan_->call.collective) && any_in_place_) {  // some rank may have written over its input
    stranger_ = passes_.unread();
    wrong_ = read.error();
    return false;
  }
  if (!read) say_unreadable(read.error());
  return true;
}

// Whether the kernel copies this rank's memory, which it then does for the others, too.
bool Direct::may_be_read(const std::byte* data, size_t bytes) {
  const transport::Attached& own = board_->attached()[static_cast<size_t>(rank_)];
  const Status read = bytes == 0 ? Status() : own.reads_ends(reinterpret_cast<uintptr_t>(data), bytes);
  if (!read) say_unreadable(read.error());
  return static_cast<bool>(read);
}

// Floats added in one order are the same on all ranks.
void Direct::begin_contest() {
  float saved = 0;
  for (const Shown& by : shown_) saved += by.saved;
  contest_->begin(saved);
}

bool Direct::copies_away() const {
  const Extent& mine = extent(rank_);
  if (mine.input_bytes + mine.output_bytes < away_.results) return false;
  const RankMemory& own = reachable_[static_cast<size_t>(rank_)];
  return mine.own_bytes({own.input, own.output}) >= away_.results;
}

// The kernel reads no memory of devices, and none that another program keeps from it.
void Direct::say_unreadable(const Error& error) {
  if (!std::exchange(said_unreadable_, true))
    log::info("rank {}: a buffer can't be read straight, copies carry the call: {}", rank_, error.what);
}

void Direct::attach() {
  for (const Rank peer : form_->reached) {
    const auto index = static_cast<size_t>(peer);
    const Shown& shown = shown_[index];
    // NOLINTNEXTLINE(performance-no-int-to-ptr): of another process
    reachable_[index] = {reinterpret_cast<std::byte*>(shown.input), reinterpret_cast<std::byte*>(shown.output), &board_->attached()[index]};
  }
}

std::byte* Direct::bounce(Rank rank, size_t piece) const { return board_->bounce(rank) + piece % 2 * board_->bounce_bytes() / 2; }

size_t Direct::piece_offset(size_t piece) const { return piece * plan_->bounced->count * size_of(plan_->call.type); }

// What others read of it. All have come to the piece before, so that the line is free, and the half of the bounce buffer, too, which was
// the one's before that.
void Direct::show_piece(size_t piece) {
  const std::byte* const own = own_.input + piece_offset(piece);
  for (const Bounced::Range& range : plan_->bounced->piece(piece).read)
    kernels::copy(bounce(rank_, piece) + range.bounced, own + range.own, range.bytes);
}

// All have come to the piece.
bool Direct::run_piece() {
  const size_t offset = piece_offset(piece_);
  for (const Rank peer : others_) reachable_[static_cast<size_t>(peer)] = {bounce(peer, piece_), bounce(peer, piece_), nullptr};
  reachable_[static_cast<size_t>(rank_)] = {own_.input + offset, own_.output + offset, nullptr};
  const Status made = passes_.run(*plan_, plan_->bounced->piece(piece_).form, reachable_, copies_away());
  if (!made) wrong_ = made.error(), stranger_ = others_.front();
  return static_cast<bool>(made);
}

// All others are done with the piece. True: it was the last.
bool Direct::take_piece() {
  std::byte* const own = own_.output + piece_offset(piece_);
  for (const Bounced::Range& range : plan_->bounced->piece(piece_).written)
    kernels::copy(own + range.own, bounce(rank_, piece_) + range.bounced, range.bytes);
  if (++piece_ == plan_->bounced->pieces) return true;
  ++sequence_;
  return false;
}

bool Direct::reach() {
  for (const Rank peer : form_->reached) {
    const Status mapped = map(peer);
    if (mapped) continue;
    stranger_ = peer;
    wrong_ = mapped.error();
    return false;
  }
  return true;
}

Status Direct::map(Rank peer) {
  const auto index = static_cast<size_t>(peer);
  const Shown& shown = shown_[index];
  const size_t in = extent(peer).input_bytes;
  const size_t out = extent(peer).output_bytes;
  RankMemory& memory = reachable_[index];
  memory = {};
  if (in != 0) memory.input = GYRE_TRY(memory_.at(peer, shown.input_segment, shown.input, in));
  if (out != 0) memory.output = GYRE_TRY(memory_.at(peer, shown.output_segment, shown.output, out));
  return {};
}

bool Direct::leave() {
  for (; next_ < awaited_->size(); ++next_) {
    const Rank peer = (*awaited_)[next_];
    if (!soon([&] { return board_->finished(peer, sequence_); }) || board_->withdrawn(peer, sequence_)) return false;
  }
  return true;
}

bool Direct::released() {
  if (plan_ == nullptr || stage_ == Stage::show || !plan_->mapped || !any_in_heap_ || attached_) return true;
  return std::all_of(plan_->mapped->users.begin(), plan_->mapped->users.end(),
                     [&](Rank user) { return board_->finished(user, sequence_); });
}

void Direct::take_back() {
  if (plan_ != nullptr && stage_ == Stage::leave) board_->withdraw(sequence_);
}

std::vector<Rank> Direct::awaited() const {
  if (stage_ == Stage::show) return others_;
  return next_ < awaited_->size() ? std::vector<Rank>{(*awaited_)[next_]} : std::vector<Rank>{};
}

// The last one in the order of ranks that is missing: its coming is often the end of the wait, where the first one's would be one of many.
Rank Direct::awaits_only() const {
  if (stage_ != Stage::meet && stage_ != Stage::leave) return -1;
  for (size_t i = awaited_->size(); i-- > next_;) {
    const Rank peer = (*awaited_)[i];
    if (stage_ == Stage::meet ? board_->arrived(peer, sequence_) == nullptr : !board_->finished(peer, sequence_)) return peer;
  }
  return -1;
}

// Steps are a direct call's stages; of a bounced one each piece has those that follow its first.
std::string Direct::where() const {
  constexpr const char *show = "in step 0 (show)", *meet = "in step 1 (meet)", *leave = "in step 2 (leave)";
  if (wrong_) return fmt::format("to reach rank {}'s memory {}", stranger_, meet);
  if (stage_ == Stage::show) return fmt::format("for ranks to be done with earlier calls {}", show);
  const auto peers = awaited();
  if (peers.empty()) return "to go on";
  const std::string piece = bounced_ ? fmt::format("piece {} of {}", piece_ + 1, plan_->bounced->pieces) : "";
  if (stage_ == Stage::meet) return fmt::format("for rank {} to come to {} {}", peers[0], bounced_ ? piece : "this call", meet);
  const std::string used = bounced_ ? piece : attached_ ? "its part" : "this rank's memory";
  return fmt::format("for rank {} to be done with {} {}", peers[0], used, leave);
}

}  // namespace gyre::engine
