#include "plugin/nccl/bell.h"

#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "plugin/guard.h"
#include "plugin/no_signals.h"
#include "transport/door.h"
#include "transport/private_fd.h"

namespace gyre::plugin::nccl {
namespace {

constexpr std::chrono::milliseconds ring_limit{3000};

}  // namespace

uint16_t hang_bell(uint64_t job, std::shared_ptr<const std::atomic<bool>> over, std::function<void()> rung,
                   std::chrono::milliseconds heard_for) {
  auto door = transport::open_wide_door();
  if (!door) return 0;
  transport::Rendezvous at = door->rendezvous(0, 2);
  at.job = job;
  at.timeout = heard_for;
  at.cancelled = over.get();
  auto fd = std::make_shared<transport::PrivateFd>(std::move(door->fd));
  const auto listen = [at, fd = std::move(fd), over = std::move(over), rung = std::move(rung)] {
    std::ignore = guard("the bell of a unique id", [&]() -> Status {
      if (transport::Bootstrap::join(at)) rung();
      return {};
    });
  };
  try {
    const NoSignals none;
    std::thread(listen).detach();
  } catch (const std::system_error&) {
    return 0;
  }
  return at.port;
}

void ring_bell(transport::Rendezvous at) {
  at.rank = 1;
  at.size = 2;
  at.timeout = ring_limit;
  at.gone_after = ring_limit / 10;
  if (at.port != 0) std::ignore = transport::Bootstrap::join(at);
}

}  // namespace gyre::plugin::nccl
