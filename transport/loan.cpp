#include "transport/loan.h"

#include <fmt/format.h>

#include <cstring>

namespace gyre::transport {

std::optional<Loan> Lender::lend(const std::byte* data, size_t bytes) {
  const SharedHeap::Segment* segment = heap_.find(data, bytes);
  if (segment == nullptr) return std::nullopt;
  Loan loan{segment->number, static_cast<uint64_t>(data - segment->begin)};
  news_.clear();
  if (!told_.has(segment->number)) {
    told_.add(segment->number);
    news_ = SharedHeap::of_process().address(segment->number);
  }
  told_.gone(loan.gone);
  return loan;
}

Result<const std::byte*> Borrower::at(const Loan& loan, const std::byte* news, size_t bytes) {
  for (const uint64_t number : loan.gone) segments_.erase(number);
  auto& memory = segments_[loan.segment];
  if (memory == nullptr) {
    char address[most_address_bytes];
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
