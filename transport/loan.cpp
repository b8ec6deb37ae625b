#include "transport/loan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace gyre::transport {

std::optional<Loan> Lender::lend(const std::byte* data, size_t bytes) {
  const SharedHeap::Segment* segment = heap_.find(data, bytes);
  if (segment == nullptr) return std::nullopt;
  const auto& heap = SharedHeap::of_process();
  Loan loan{segment->number, static_cast<uint64_t>(data - segment->begin)};
  news_.clear();
  if (std::find(told_.begin(), told_.end(), segment->number) == told_.end()) {
    told_.push_back(segment->number);
    news_ = heap.address(segment->number);
  }
  // What was released takes memory until the peer hears of it.
  if (const uint64_t now = heap.changes(); now != told_changes_) {
    size_t count = 0;
    std::erase_if(told_, [&](uint64_t number) {
      if (count == std::size(loan.gone) || heap.segment(number)) return false;
      loan.gone[count++] = number;
      return true;
    });
    if (count < std::size(loan.gone)) told_changes_ = now;  // else more may be gone
  }
  return loan;
}

Result<const std::byte*> Borrower::at(const Loan& loan, const std::byte* news, size_t bytes) {
  for (const uint64_t number : loan.gone) segments_.erase(number);
  auto& memory = segments_[loan.segment];
  if (memory == nullptr) {
    char address[address_room];
    std::memcpy(address, news, sizeof address);
    auto opened = SharedMemory::open({address, strnlen(address, sizeof address)});
    if (!opened) return Error{Code::remote, fmt::format("memory that the peer lends: {}", opened.error().what)};
    memory = *std::move(opened);
  }
  if (loan.offset > memory->bytes() || bytes > memory->bytes() - loan.offset)
    return Error{Code::remote, fmt::format("the peer lends {} bytes from {} on of a memory of {}", bytes, loan.offset, memory->bytes())};
  return memory->data() + loan.offset;
}

}  // namespace gyre::transport
