#include "transport/bootstrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "transport/bootstrap_join.h"
#include "transport/bootstrap_member.h"
#include "transport/bootstrap_text.h"
#include "transport/bootstrap_watch.h"

namespace gyre::transport {

using namespace bootstrap;

struct Bootstrap::State {
  State(Rank r, int n) : rank(r), size(n), member(n) {}
  Rank rank;
  int size;
  std::chrono::milliseconds limit{0};
  uint64_t gathers = 0;
  bool stays_away = false;
  Member member;
  std::unique_ptr<Watch> watch;  // last: its thread uses the member
};

namespace {

// How long rank 0's word can take to get here.
constexpr std::chrono::milliseconds word_time{3000};
// And that of one that gives up to its own kernel, since its process often ends next.
constexpr std::chrono::milliseconds last_word_time{500};

Status check(const Rendezvous& rendezvous) {
  const auto wrong = [&](const std::string& text) {
    return Error{Code::invalid_argument, fmt::format("rank {}: {}", rendezvous.rank, text)};
  };
  if (rendezvous.rank < 0 || rendezvous.rank >= rendezvous.size) return wrong(fmt::format("not in a job of {} ranks", rendezvous.size));
  if (rendezvous.size == 1 || (rendezvous.rank == 0 && rendezvous.listen_fd >= 0)) return {};
  if (rendezvous.port == 0) return wrong("no port of rank 0 is given");
  if (rendezvous.ports < 1 || rendezvous.port + rendezvous.ports - 1 > 65535)
    return wrong(fmt::format("{} ports from {} on are not to be had", rendezvous.ports, rendezvous.port));
  return {};
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> Bootstrap::join(const Rendezvous& rendezvous) {
  GYRE_TRY(check(rendezvous));
  std::vector<Joined> joined;
  if (rendezvous.size == 1)
    joined.push_back({Connection(), Process::self(), {}});
  else if (rendezvous.rank == 0)
    joined = GYRE_TRY(gather_ranks(rendezvous));
  else
    joined.push_back(GYRE_TRY(reach_root(rendezvous)));
  auto state = std::make_unique<State>(rendezvous.rank, rendezvous.size);
  state->watch = GYRE_TRY(Watch::start(rendezvous.rank, std::move(joined), state->member));
  return std::unique_ptr<Bootstrap>(new Bootstrap(std::move(state)));
}

Bootstrap::Bootstrap(std::unique_ptr<State> state) : state_(std::move(state)) {}
Bootstrap::~Bootstrap() = default;

Rank Bootstrap::rank() const { return state_->rank; }
int Bootstrap::size() const { return state_->size; }
bool Bootstrap::attention() const { return state_->member.attention(); }
const Error* Bootstrap::failure() const { return state_->member.failure(); }
bool Bootstrap::asked() const { return state_->member.asked(); }
bool Bootstrap::left(Rank rank) const { return state_->member.left(rank); }
const Error* Bootstrap::wait_for_failure(std::chrono::milliseconds limit) { return state_->member.wait_for_failure(limit); }

Result<std::vector<std::string>> Bootstrap::all_gather(std::string_view mine, std::chrono::milliseconds limit) {
  if (mine.size() > max_gather_bytes)
    return Error{Code::invalid_argument, fmt::format("all_gather of {} bytes: more than {}", mine.size(), max_gather_bytes)};
  if (const Error* why = failure()) return Error{*why};
  if (state_->stays_away) return Error{Code::invalid_usage, fmt::format("rank {} stays away from calls of all", rank())};
  const uint64_t gather = ++state_->gathers;
  const bool ends_job = limit.count() != 0;
  if (!ends_job) limit = state_->limit;
  state_->watch->post({Kind::gather, std::string(mine)});
  auto parts = state_->member.wait_for_parts(gather, limit);
  const bool late = parts && !*parts;
  if (late) {  // rank 0 knows for whom; its word comes at once unless it is stopped
    Message message{Kind::give_up, {}};
    put(message.payload, gather);
    message.payload += seconds_text(limit);
    state_->watch->post(std::move(message));
    parts = state_->member.wait_for_parts(gather, ends_job ? std::min(limit, word_time) : limit);
  }
  if (parts && *parts) return **std::move(parts);
  const Error error =
      parts ? Error{Code::timeout, fmt::format("rank 0 does not say who did not come to a call of all within {}", seconds_text(limit))}
            : parts.error();
  if (parts || (late && ends_job)) fail(error);
  return error;
}

void Bootstrap::stay_away(std::string_view mine) {
  state_->stays_away = true;
  state_->watch->post({Kind::stay_away, std::string(mine.substr(0, max_gather_bytes))});
}

void Bootstrap::limit_gathers(std::chrono::milliseconds limit) { state_->limit = limit; }
std::chrono::milliseconds Bootstrap::limit_of_gathers() const { return state_->limit; }

Status Bootstrap::barrier() {
  GYRE_TRY(all_gather({}));
  return {};
}

void Bootstrap::describe(uint64_t call, uint64_t plan, std::string_view text, bool urgent, std::span<const Pair> pairs) {
  Message message{Kind::describe, {}};
  put(message.payload, call);
  put(message.payload, plan);
  put(message.payload, static_cast<uint8_t>(urgent));
  put(message.payload, static_cast<uint32_t>(pairs.size()));
  for (const Pair& pair : pairs) {
    put(message.payload, static_cast<uint64_t>(pair.peer));
    for (const uint64_t number : {pair.sends, pair.receives, pair.awaited_send, pair.awaited_receive}) put(message.payload, number);
  }
  message.payload += text.substr(0, max_text);
  state_->member.answered();
  state_->watch->post(std::move(message));
}

void Bootstrap::finished() { state_->watch->post({Kind::no_call, {}}); }

void Bootstrap::made(uint64_t number, uint64_t plan, bool refused) { state_->member.history().add(number, plan, refused); }

void Bootstrap::name(uint64_t plan, std::string_view text) { state_->member.history().name(plan, text); }

// The others first: another thread that sees failure() may end the process.
void Bootstrap::fail(const Error& error) {
  state_->watch->tell(failure_message(error.code, error.what), last_word_time);
  state_->member.fail(error);
}

}  // namespace gyre::transport
