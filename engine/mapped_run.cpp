#include "engine/mapped_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace gyre::engine {
namespace {

constexpr std::array<size_t, 2> bytes_of_words{sizeof(MappedBuffers), 1};

}  // namespace

MappedRun::MappedRun(std::shared_ptr<const Planned> planned, Own own, const std::vector<transport::Fifo*>& fifos, const Identity& call,
                     DeviceQueue& queue, const Tickets& tickets, TimeLimit limit, std::shared_ptr<MappedBoard> board)
    : planned_(std::move(planned)),
      own_(std::move(own)),
      call_(call),
      queue_(queue),
      tickets_(tickets),
      limit_(limit),
      board_(std::move(board)),
      said_(words * fifos.size()),
      heard_(words * fifos.size()) {
  said_.front() = heard_[static_cast<size_t>(own_.rank)] = own_.buffers;
  staging_.ranks = fifos.size();
  staging_.credits = words;
  staging_.place_bytes = fifos.size() * sizeof(MappedBuffers);
  for (MappedBuffers& theirs : std::span(heard_).first(fifos.size())) {
    staging_.in.push_back(reinterpret_cast<std::byte*>(&theirs));
    staging_.out.push_back(reinterpret_cast<std::byte*>(said_.data()));
  }
  for (uint32_t peer = 0; peer < fifos.size(); ++peer) {
    auto& link = links_.emplace_back();
    if (fifos[peer] != nullptr) link = device_link({*fifos[peer], call.word, bytes_of_words, bytes_of_words, staging_, peer}, false);
  }
}

Work::Moved MappedRun::move() {
  bool any = note_ended();
  any |= exchange();
  any |= open();
  const bool idle = std::all_of(links_.begin(), links_.end(), [](const auto& link) { return link == nullptr || link->idle(); });
  return {any, ended_ == mapped_steps && idle};
}

bool MappedRun::note_ended() {
  const auto ended = static_cast<uint32_t>(queue_.ended(tickets_) - tickets_.first);
  const uint32_t before = std::exchange(ended_, ended);
  if (ended != before) board_->meet();
  for (uint32_t step = before; step < std::min<uint32_t>(ended, kernels_end); ++step) {
    for (const auto& link : links_) {
      if (link != nullptr) link->note_made();
    }
  }
  return ended != before;
}

bool MappedRun::exchange() {
  bool any = false;
  for (size_t peer = 0; peer < links_.size(); ++peer) {
    DeviceLink* const link = links_[peer].get();
    if (link == nullptr) continue;
    any |= link->receive();
    any |= link->send();
    if (link->strange()) stranger_ = static_cast<Rank>(peer);
  }
  return any;
}

bool MappedRun::all_have(Word word) const {
  return std::all_of(links_.begin(), links_.end(), [&](const auto& link) { return link == nullptr || link->has(word); });
}

// The kernel before this one has ended, so that nobody reads the list.
bool MappedRun::begin_kernel() {
  const uint64_t ticket = tickets_.first + kernel_runs;
  refused_ = refused_ || !board_->begin(own_.rank, queue_.ended_flag(), ticket + 1);
  if (refused_) return false;
  const auto buffers = std::span(heard_).first(links_.size());
  queue_.write_list(ticket, [&](kernels::StepList& list) { write_list(list, own_.pass, own_.rank, buffers); });
  return true;
}

bool MappedRun::may_open() {
  switch (opened_) {
    case stream_comes:
      return true;
    case kernel_runs:
      return ended_ > stream_comes && all_have(comes) && begin_kernel();
    case kernels_end:
      if (ended_ <= kernel_runs || !all_have(ends)) return false;
      board_->meet();
      return true;
    default:
      return false;
  }
}

bool MappedRun::open() {
  const uint32_t before = opened_;
  while (may_open()) queue_.open(tickets_, tickets_.first + ++opened_);
  return opened_ != before;
}

// Those that have not come, and if all have, those whose kernels have not ended.
std::vector<Rank> MappedRun::awaited() const {
  const Word word = all_have(comes) ? ends : comes;
  std::vector<Rank> peers;
  for (size_t peer = 0; peer < links_.size(); ++peer) {
    if (links_[peer] != nullptr && !links_[peer]->has(word)) peers.push_back(static_cast<Rank>(peer));
  }
  return peers;
}

std::string MappedRun::where() const {
  if (waits_for_itself()) return "for the GPU";
  if (refused_) return "for word of a rank that has left";
  const auto peers = awaited();
  if (peers.empty()) return ended_ == mapped_steps ? "for its last words to leave" : "for the GPU";
  return fmt::format("for rank {} to {}", peers[0], all_have(comes) ? "end its kernel" : "come to the call");
}

}  // namespace gyre::engine
