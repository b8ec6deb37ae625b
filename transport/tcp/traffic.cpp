#include "transport/tcp/traffic.h"

#include <utility>

#include "transport/tcp/fifo.h"

namespace gyre::transport::tcp {
namespace {

constexpr uint32_t patience = 4;       // calls of progress() without a message before others are asked
constexpr uint32_t look_every = 4096;  // calls without a message between two looks at the clock
constexpr std::chrono::seconds look_interval{1};

}  // namespace

void Traffic::add(TcpFifo& fifo) {
  all_.push_back(&fifo);
  queued_.reserve(all_.capacity());
  awaited_.reserve(all_.capacity());
}

void Traffic::remove(TcpFifo& fifo) {
  for (auto* list : {&all_, &queued_, &awaited_}) std::erase(*list, &fifo);
}

void Traffic::queue(TcpFifo& fifo) {
  if (!std::exchange(fifo.queued, true)) queued_.push_back(&fifo);
}

void Traffic::await(TcpFifo& fifo) {
  if (!std::exchange(fifo.awaited, true)) awaited_.push_back(&fifo);
}

unsigned Traffic::progress() {
  unsigned count = 0;
  for (size_t i = 0; i < queued_.size();) {
    if (!queued_[i]->write()) {
      ++i;
      continue;
    }
    queued_[i]->queued = false;
    queued_[i] = queued_.back();
    queued_.pop_back();
    ++count;
  }
  if (++idle_ <= patience) return count;
  count += ask_one();
  if (idle_ % look_every == 0) [[unlikely]]
    look_at_hosts();
  return count;
}

// Who sleeps calls progress() too seldom to get to that by counting.
void Traffic::arm(std::vector<pollfd>& awaited) {
  look_at_hosts();
  for (const TcpFifo* fifo : all_) {
    if (const pollfd waits = fifo->waits(); waits.events != 0) awaited.push_back(waits);
  }
}

unsigned Traffic::ask_one() {
  while (!awaited_.empty()) {
    next_ = next_ < awaited_.size() ? next_ : 0;
    TcpFifo& fifo = *awaited_[next_];
    if (fifo.awaits()) {
      ++next_;
      return !std::exchange(fifo.asked, false) && fifo.read() ? 1 : 0;
    }
    fifo.awaited = false;
    awaited_[next_] = awaited_.back();
    awaited_.pop_back();
  }
  return 0;
}

void Traffic::look_at_hosts() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < look_interval) return;
  looked_ = now;
  for (TcpFifo* fifo : all_) fifo->look_at_host(silence_);
}

}  // namespace gyre::transport::tcp
