// How communicators come to be: of the ranks that a launcher has started, and of some of another communicator's.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <future>
#include <numeric>
#include <thread>

#include "base/log.h"
#include "base/text.h"
#include "engine/communicator.h"
#include "engine/copy_trial.h"
#include "engine/gpu_channels.h"
#include "engine/memory.h"
#include "engine/network.h"
#include "topo/constants.h"
#include "transport/bootstrap_wire.h"
#include "transport/transport.h"

namespace gyre::engine {
namespace {

// Ranks that see different ranks live wait in vain for those; longer than another can be busy asking a host that does not answer.
constexpr std::chrono::milliseconds attempt_slack{3000};
constexpr std::chrono::milliseconds pause{50};
// How long word of a rank's end can take to get here.
constexpr std::chrono::milliseconds word_time{3000};
// Ranks come from the same exchange; one whose processor somebody else has comes later, and what would be measured means nothing.
constexpr std::chrono::microseconds trial_patience{20000};
constexpr int64_t always_attached = 2;  // GYRE_ATTACH

/// What blocks without moving what this process has in flight on other communicators is done by another thread meanwhile.
template <class Step>
auto while_others_move(Step step) -> decltype(step()) {
  if (!InFlight::move_others()) return step();
  auto done = std::async(std::launch::async, std::move(step));
  while (done.wait_for(std::chrono::microseconds(50)) != std::future_status::ready) InFlight::move_others();
  return done.get();
}

/// What ended the communicator whose ranks met. Those who know that may be meeting without this rank already, and then what they say of it
/// is not the cause.
const Error* word_of_end(transport::Bootstrap& of, const std::atomic<bool>* cancelled) {
  const auto end = std::chrono::steady_clock::now() + word_time;
  while (std::chrono::steady_clock::now() < end && (cancelled == nullptr || !cancelled->load())) {
    if (const Error* ended = of.wait_for_failure(pause)) return ended;
  }
  return nullptr;
}

/// Without a grid that so many of the ranks can't have.
Config for_part(Config config, size_t ranks) {
  const auto grid = parse_grid(*config.grid);
  if (!grid || std::accumulate(grid->begin(), grid->end(), size_t{1}, std::multiplies<>()) == ranks) return config;
  log::info("GYRE_GRID={}: not for {} of the ranks", *config.grid, ranks);
  config.grid = Config().grid;
  return config;
}

Result<std::shared_ptr<const topo::ConstantsText>> constants_read(transport::Bootstrap& bootstrap, const std::string& file) {
  auto text = topo::read_constants(file);
  if (text) return std::make_shared<const topo::ConstantsText>(*std::move(text));
  bootstrap.fail(text.error());  // the others are about to wait for us
  return text.error();
}

/// Whether the ranks of the board find that processors share a cache; not where one of them found nothing. It changes no result: not which
/// algorithm runs a reduction, only how bytes are written.
Result<bool> share_cache(transport::Bootstrap& bootstrap, const transport::Board& board) {
  const std::optional<CopyTrial::Times> own = CopyTrial(bootstrap.rank()).run(board, trial_patience);
  const std::string_view mine = own ? std::string_view(reinterpret_cast<const char*>(&*own), sizeof *own) : "";
  std::vector<CopyTrial::Times> all;
  for (const std::string& found : GYRE_TRY(bootstrap.all_gather(mine))) {
    if (found.size() != sizeof *own) return false;
    std::memcpy(&all.emplace_back(), found.data(), found.size());
  }
  return CopyTrial::favours_caches(all);
}

/// Whether the ranks' calls find out if blocks are best read straight, where they can be.
Result<bool> contests(transport::Bootstrap& bootstrap, const transport::Board* board, const Config& config) {
  if (board == nullptr || board->attached().empty()) return false;
  return !GYRE_TRY(all_have(bootstrap, *config.attach == always_attached));
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(const transport::Rendezvous& rendezvous, const Config& given) {
  transport::open_ucx_before_threads(given);
  return while_others_move(
      [&]() -> Result<std::unique_ptr<Communicator>> { return form(GYRE_TRY(transport::Bootstrap::join(rendezvous)), given); });
}

Result<std::unique_ptr<Communicator>> Communicator::create(std::unique_ptr<transport::Bootstrap> bootstrap, const Config& given) {
  return while_others_move([&] { return form(std::move(bootstrap), given); });
}

Result<std::unique_ptr<Communicator>> Communicator::form(std::unique_ptr<transport::Bootstrap> bootstrap, const Config& given,
                                                         std::shared_ptr<const topo::ConstantsText> constants,
                                                         const std::optional<topo::GpuRow>& gpu) {
  if (constants == nullptr) constants = GYRE_TRY(constants_read(*bootstrap, *given.constants));
  const auto facts = GYRE_TRY(exchange_facts(*bootstrap, given, constants->digest(), gpu));
  const auto fitting = within_memory(suited(given, facts), facts);
  const auto gpus = fitting ? gpu_ranks(facts) : Result<std::vector<topo::GpuRank>>(fitting.error());
  auto circumstances =
      gpus ? engine::circumstances(*fitting, facts, *constants, topo::rails_near(*gpus)) : Result<Circumstances>(gpus.error());
  if (!circumstances) {
    bootstrap->fail(circumstances.error());
    return circumstances.error();
  }
  const Config& config = *fitting;
  const auto own = static_cast<size_t>(bootstrap->rank());
  auto reunion = GYRE_TRY(transport::Reunion::open(*bootstrap, facts[own].host));
  auto connections = GYRE_TRY(connect_ranks(*bootstrap, config, facts, topo::rails_from(*gpus, bootstrap->rank())));
  circumstances->missing = connections.missing;
  circumstances->placed = placed(facts, GYRE_TRY(gpu_channels(*bootstrap, *gpus, connections.missing)));
  auto doorbell = GYRE_TRY(open_doorbell(*bootstrap, connections));
  const HostLoad load = host_load(facts, bootstrap->rank());
  const bool attach = circumstances->costs.direct_bounds && circumstances->costs.direct_bounds->attaches(bootstrap->size());
  auto board = GYRE_TRY(open_board(*bootstrap, connections, config, bounce_bytes(config, facts.size()), attach));
  if (board != nullptr && doorbell != nullptr) board->rings(*doorbell);
  const bool may_share = board != nullptr && !load.crowded;  // which all ranks know alike
  const bool one_cache = may_share && GYRE_TRY(share_cache(*bootstrap, *board));
  const bool contest = GYRE_TRY(contests(*bootstrap, board.get(), config));
  const auto caches = fmt::format("/sys/devices/system/cpu/cpu{}/cache", std::max(sched_getcpu(), 0));
  const Away away = Away::of(load, shared_cache(caches), one_cache);
  return std::unique_ptr<Communicator>(
      new Communicator({std::move(bootstrap), given, config, std::move(constants), *std::move(circumstances), std::move(reunion),
                        std::move(connections), std::move(doorbell), std::move(board), load.crowded, contest, away}));
}

// Ranks that name others would not know who is who.
Result<std::unique_ptr<Communicator>> Communicator::among(const std::vector<Rank>& members, const transport::Rendezvous& meeting,
                                                          const std::optional<topo::GpuRow>& gpu) const {
  auto bootstrap = GYRE_TRY(transport::Bootstrap::join(meeting));
  bootstrap->limit_gathers(bootstrap_->limit_of_gathers());
  const std::string own = fmt::format("{}", fmt::join(members, ", "));
  for (const std::string& other : GYRE_TRY(bootstrap->all_gather(own))) {
    if (other == own) continue;
    Error error{Code::invalid_usage, fmt::format("ranks differ: rank {} goes on with ranks {}, another with ranks {}", rank(), own, other)};
    bootstrap->fail(error);
    return error;
  }
  return form(std::move(bootstrap), for_part(given_, members.size()), constants_, gpu);
}

Result<std::vector<std::string>> Communicator::all_gather(std::string_view mine) {
  return while_others_move([&] { return bootstrap_->all_gather(mine, start_limit()); });
}

Result<std::unique_ptr<Communicator>> Communicator::split(int color, int key, const std::atomic<bool>* cancelled,
                                                          const std::optional<topo::GpuRow>& gpu) {
  if (auto error = broken()) return *std::move(error);
  if (!in_flight_.empty()) GYRE_TRY(wait({in_flight_.begun()}));
  std::string mine;
  transport::bootstrap::put(mine, color);
  transport::bootstrap::put(mine, key);
  std::vector<std::pair<int, Rank>> keys;
  Rank next = 0;
  const auto gathered = while_others_move([&] { return bootstrap_->all_gather(mine, time_limit_); });
  if (!gathered) return gathered.error();
  for (const std::string& bytes : *gathered) {
    std::string_view rest = bytes;
    const int theirs = transport::bootstrap::take<int>(rest).value_or(-1);
    const int place = transport::bootstrap::take<int>(rest).value_or(0);
    if (theirs == color) keys.emplace_back(place, next);
    ++next;
  }
  if (color < 0) return std::unique_ptr<Communicator>();
  std::sort(keys.begin(), keys.end());
  std::vector<Rank> members(keys.size());
  std::transform(keys.begin(), keys.end(), members.begin(), [](const auto& one) { return one.second; });
  transport::Rendezvous meeting = reunion_.rendezvous(members, start_limit());
  meeting.cancelled = cancelled;
  meeting.of = bootstrap_.get();  // a rank that has ended since does not come
  return while_others_move([&]() -> Result<std::unique_ptr<Communicator>> {
    auto made = among(members, meeting, gpu);
    if (made || made.error().code != Code::remote) return made;
    const Error* ended = word_of_end(*bootstrap_, cancelled);
    return ended != nullptr ? *ended : made.error();
  });
}

Result<std::unique_ptr<Communicator>> Communicator::shrink(std::span<const Rank> without, const std::atomic<bool>* cancelled) {
  std::vector<Rank> members;
  for (Rank r = 0; r < size(); ++r) {
    if (std::find(without.begin(), without.end(), r) == without.end()) members.push_back(r);
  }
  for (const Rank r : without) {
    if (r < 0 || r >= size()) return Error{Code::invalid_argument, fmt::format("shrink: there is no rank {}, there are {}", r, size())};
    if (r == rank()) return Error{Code::invalid_argument, fmt::format("shrink: rank {} is to be left out, and calls", r)};
  }
  transport::Rendezvous meeting = reunion_.rendezvous(members, start_limit());
  meeting.cancelled = cancelled;
  return while_others_move([&] { return among(members, meeting); });
}

// A rank may end while others look who lives, and be seen by some of them. They meet again then, and see the same sooner or later.
Result<std::unique_ptr<Communicator>> Communicator::shrink() {
  const auto end = std::chrono::steady_clock::now() + start_limit();
  const std::chrono::milliseconds answer = std::chrono::seconds(*given_.peer_timeout);
  for (;;) {
    auto made = while_others_move([&] {
      const std::vector<Rank> living = reunion_.living(answer);
      return among(living, reunion_.rendezvous(living, std::min(start_limit(), answer + attempt_slack)));
    });
    if (made || std::chrono::steady_clock::now() >= end) return made;
    log::info("rank {}: shrinking anew: {}", rank(), made.error().what);
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace gyre::engine
