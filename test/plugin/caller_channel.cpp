#include "test/plugin/caller_channel.h"

#include <sys/mman.h>

#include <stdexcept>

namespace gyre::test {

Pages::Pages(size_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  bytes_ = {static_cast<std::byte*>(pages), bytes};
}

Pages::~Pages() {
  if (bytes_.data() != nullptr) munmap(bytes_.data(), bytes_.size());
}

Status Channel::make_buffers() {
  for (const Protocol protocol : protocols) {
    const size_t slots = static_cast<size_t>(steps_in_flight * job_.traffic.senders);
    const std::span<std::byte> buffer = buffers_.emplace_back(slots * job_.traffic.slot_bytes(protocol)).bytes();
    memory_.push_back(GYRE_TRY(plugin_.register_memory(comm_, buffer.data(), buffer.size(), NCCL_PTR_HOST)));
  }
  return {};
}

std::span<std::byte> Channel::slot(Protocol protocol, int sender, int64_t step) const {
  const size_t bytes = job_.traffic.slot_bytes(protocol);
  const auto index = static_cast<size_t>(sender * steps_in_flight) + static_cast<size_t>(step % steps_in_flight);
  return buffer(protocol).subspan(index * bytes, bytes);
}

void Channel::close() {
  const auto must = [&](const Status& done) {
    if (!done) job_.say("while closing: " + done.error().what);
  };
  if (closed_) return;
  closed_ = true;
  for (void* memory : memory_) must(plugin_.deregister(comm_, memory));
  buffers_.clear();
  job_.at(Point::closing);
  must(sends_ ? plugin_.close_send(comm_) : plugin_.close_recv(comm_));
}

}  // namespace gyre::test
