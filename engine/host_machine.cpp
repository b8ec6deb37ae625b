#include "engine/host_machine.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace gyre::engine {

using schedule::Buffer;
using schedule::Chunks;
using schedule::Step;

namespace {

// Shorter messages, and those of smaller buffers, are copied sooner than their receivers could say that they have read them
// (perf/results/2026-11-29-loans).
constexpr size_t least_loan = 16 << 10, least_lent = 256 << 10;

}  // namespace

HostMachine::HostMachine(Rank rank, uint32_t channel, uint32_t strand, std::vector<transport::Fifo*> fifos, Away away)
    : rank_(rank), channel_(channel), strand_(strand), fifos_(std::move(fifos)), away_(away), posting_(fifos_) {
  sources_.reserve(fifos_.size() + 1);
  pieces_.reserve(fifos_.size() + 1);
  sinks_.reserve(fifos_.size() + 1);
}

void HostMachine::bind(const Plan& plan, uint64_t word, const Buffers& buffers, std::byte* scratch) {
  const Call& call = plan.call();
  const int ranks = plan.schedule().ranks;
  plan_ = &plan;
  program_ = &plan.schedule().program(rank_, channel_, strand_);
  facts_ = plan.proof().facts[static_cast<size_t>(program_ - plan.schedule().programs.data())].data();
  word_ = word;
  buffers_[0] = static_cast<std::byte*>(
      const_cast<void*>(buffers.input));  // NOLINT(cppcoreguidelines-pro-type-const-cast): verified: steps write output only
  buffers_[1] = static_cast<std::byte*>(buffers.output);
  buffers_[2] = scratch;
  combine_.bind(call.type, call.op, ranks, buffers.scalar, plan.ordered());
  position_ = {};
  if (program_->steps.empty()) position_.round = plan.rounds();
  blocked_ = {};
  mismatched_ = -1;
  taken_back_ = false;
  const Extent extent = engine::extent(call, rank_, ranks);
  const bool in_place = extent.in_place(buffers);
  messages_away_ = away_.messages != Away::never && std::max(extent.input_bytes, extent.output_bytes) >= away_.calls;
  look_for_loans(extent, buffers);
  posting_.bind(plan, *program_, word, buffers_, in_place, lends());
  if (lends()) kernels::fence_away();  // what the user's program may have written past the caches, and others will read
  // Results may be sent from where they are. What is reduced in place has just been read, and stays in the caches for longer.
  results_away_ = !posting_.posts() && extent.own_bytes(buffers) / (in_place && reduces(call.collective) ? 2 : 1) >= away_.results;
}

// Where messages are sooner read from memory than from another processor's caches, they are not read where they may lie in these.
void HostMachine::look_for_loans(const Extent& extent, const Buffers& buffers) {
  const bool may = posting_.can_lend() && !messages_away_;
  lent_[0] = may && extent.input_bytes >= least_lent && heap_.find(buffers.input, extent.input_bytes) != nullptr;
  lent_[1] = may && extent.output_bytes >= least_lent && heap_.find(buffers.output, extent.output_bytes) != nullptr;
  if (lends() && !plan_->lendable()) lent_[0] = lent_[1] = false;
}

bool HostMachine::run(size_t limit) {
  if (posting_.needed()) posting_.announce(position_);
  size_t ran = 0;
  while (position_.round < plan_->rounds() && ran < limit && !taken_back_) {
    const Step& step = program_->steps[position_.cursor.step];
    begin(step);
    blocked_ = schedule::advance(*this, plan_->schedule(), step);
    if (blocked_.wait == schedule::Wait::completion) blocked_.peer = reader_;
    if (blocked_.wait != schedule::Wait::nothing) break;
    ++ran;
    position_.next(plan_->slices(), program_->steps.size());
    if (posting_.needed()) posting_.announce(position_);
  }
  return ran != 0;
}

std::vector<Rank> HostMachine::awaited() const {
  if (step() == nullptr) return posting_.readers();
  return blocked_.peer >= 0 ? std::vector{blocked_.peer} : std::vector<Rank>();
}

void HostMachine::begin(const Step& step) {
  size_t elements = 0;
  for (uint32_t i = 0; i < step.flow().count; ++i) elements += piece(step.flow(), i).count;
  const schedule::Fact& fact = facts_[position_.cursor.step];
  arriving_bytes_ = elements * plan_->width(fact.arrived);
  sent_bytes_ = elements * plan_->width(fact.value);
  sources_.clear();
  borrows_ = false;
}

bool HostMachine::arrived(Rank peer) {
  const transport::Arrival arrival = fifo(peer).front();
  if (arrival.data == nullptr) return false;
  // Nothing is touched before both sides agree on what they run.
  if (arrival.plan == word_ && arrival.bytes == arriving_bytes_) [[likely]]
    return true;
  mismatched_ = peer;
  return false;
}

void HostMachine::take(Rank peer) {
  const transport::Arrival arrival = fifo(peer).front();
  sources_.push_back({{}, arrival.data});
  borrows_ = borrows_ || arrival.lent;
  taken_back_ = taken_back_ || arrival.data == nullptr;
}

// A direct connection sends what lies in user memory from there, and one that lends what lies in the heap; all else goes through a slot.
bool HostMachine::from_memory(const Step& step, const transport::Fifo& fifo) const {
  if (step.flow().count != 1 || !(step.dst.present() || (step.sources() == 1 && !combine_.scales()))) return false;
  if (fifo.direct()) return true;
  const Chunks& source = step.dst.present() ? step.dst : step.src;
  return sent_bytes_ >= least_loan && lent_[static_cast<size_t>(source.buffer)] && fifo.lends();
}

void HostMachine::finish(const Step& step) {
  if (!taken_back_) compute(step);
  taken_back_ = taken_back_ || (borrows_ && !still_there(step));
  if (taken_back_) [[unlikely]]
    return;
  send(step);
  for (const Rank peer : plan_->schedule().peers(step.from)) fifo(peer).pop();
}

// A peer that ends takes back what it has lent, and may have written there meanwhile.
bool HostMachine::still_there(const Step& step) const {
  const auto peers = plan_->schedule().peers(step.from);
  std::atomic_thread_fence(std::memory_order_acquire);
  return std::all_of(peers.begin(), peers.end(), [this](Rank peer) { return fifo(peer).front().data != nullptr; });
}

// Only of what is copied: sums take as long either way.
bool HostMachine::result_away(const Step& step, const std::byte* result) const {
  if (step.dst.buffer != Buffer::output || pieces_.size() != 1 || pieces_[0].data == result) return false;
  return !reduces(plan_->call().collective) || facts_[position_.cursor.step].value == schedule::Form::whole;
}

void HostMachine::compute(const Step& step) {
  const schedule::Fact fact = facts_[position_.cursor.step];
  size_t offset = 0;  // in the messages, in elements
  for (uint32_t i = 0; i < step.flow().count; ++i) {
    pieces_.clear();
    sinks_.clear();
    const Piece p = piece(step.flow(), i);
    for (const Operand& source : sources_) {
      if (source.arrived != nullptr) {
        pieces_.push_back({source.arrived + offset * plan_->width(fact.arrived), false, fact.arrived});
      } else {
        pieces_.push_back({address(source.chunks, piece(source.chunks, i)), source.chunks.buffer == Buffer::input, fact.local});
      }
    }
    if (step.dst.present()) {
      std::byte* result = address(step.dst, piece(step.dst, i));
      sinks_.push_back({result, results_away_ && result_away(step, result)});
    }
    for (const Rank peer : plan_->schedule().peers(step.to)) {
      transport::Fifo& out = fifo(peer);
      if (from_memory(step, out)) continue;
      sinks_.push_back(
          {out.reserve(sent_bytes_) + offset * plan_->width(fact.value), messages_away_ && sent_bytes_ >= away_.messages && !out.posted()});
    }
    if (!sinks_.empty()) combine_(pieces_, sinks_, p.count, fact, step.association);
    offset += p.count;
  }
}

void HostMachine::send(const Step& step) {
  for (const Rank peer : plan_->schedule().peers(step.to)) {
    transport::Fifo& out = fifo(peer);
    if (!from_memory(step, out)) {
      out.commit(word_, sent_bytes_);
      continue;
    }
    const Chunks& source = step.dst.present() ? step.dst : step.src;
    const std::byte* data = address(source, piece(source, 0));
    out.send_from(word_, data, sent_bytes_);  // has a credit: credit() was asked
    posting_.hold(peer, data, sent_bytes_);
  }
}

}  // namespace gyre::engine
