// What carries on when a connection has no path left: UCX over TCP, or what tests put in its place.
#include <fmt/format.h>

#include <algorithm>

#include "transport/verbs/worker.h"
#ifdef GYRE_HAVE_UCX
#include "transport/ucx.h"
#endif

namespace gyre::transport::verbs {

Status VerbsWorker::open_fallback() {
  if (way_.open_fallback) {
    fallback_ = GYRE_TRY(way_.open_fallback());
    return {};
  }
  if (!way_.fallback_tcp) return {};
#ifdef GYRE_HAVE_UCX
  UcxWay tcp;
  tcp.name = "tcp";
  tcp.transports = "tcp";
  tcp.requests = 2 * ring_entries;
  auto opened = open_ucx_worker({}, tcp);
  if (!opened) return Error{opened.error().code, fmt::format("GYRE_FALLBACK=tcp: {}", opened.error().what)};
  fallback_ = *std::move(opened);
  return {};
#else
  return Error{Code::invalid_usage, "GYRE_FALLBACK=tcp: this gyre was built without UCX"};
#endif
}

bool VerbsWorker::fallback_takes_cuda() const {
#ifdef GYRE_HAVE_UCX
  return ucx_memory().cuda;
#else
  return false;
#endif
}

std::unique_ptr<Endpoint> VerbsWorker::take_fallback(std::string_view hello) {
  const auto found =
      std::find_if(fallback_arrivals_.begin(), fallback_arrivals_.end(), [&](const auto& one) { return one->hello() == hello; });
  if (found == fallback_arrivals_.end()) return nullptr;
  auto taken = std::move(*found);
  fallback_arrivals_.erase(found);
  return taken;
}

// While connections are made, or live by it; and now and then, so that UCX hears its peers.
unsigned VerbsWorker::progress_fallback() {
  if (!fallback_) return 0;
  constexpr uint32_t calls_between_looks = 64;
  constexpr size_t most_arrivals = 1024;
  const bool busy = std::any_of(endpoints_.begin(), endpoints_.end(), [](VerbsEndpoint* one) { return one->needs_fallback(); });
  if (!busy && calls_ % calls_between_looks != 0) return 0;
  const unsigned moved = fallback_->progress();
  if (fallback_listener_)
    if (auto arrived = fallback_listener_->accept(); arrived && *arrived) fallback_arrivals_.push_back(*std::move(arrived));
  if (fallback_arrivals_.size() > most_arrivals) fallback_arrivals_.erase(fallback_arrivals_.begin());  // nobody has come for it
  for (VerbsEndpoint* endpoint : endpoints_)
    if (endpoint->connected()) endpoint->link()->progress_detour();
  return moved;
}

}  // namespace gyre::transport::verbs
