#include "plugin/nccl/wrap_births.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "plugin/nccl/config.h"
#include "plugin/nccl/wrap_real.h"
#include "transport/control.h"
#include "transport/door.h"

namespace gyre::plugin::nccl::wrap {
namespace {

std::atomic<bool> encrypts{false};
const char* const not_encrypted = "NCCL is to encrypt its connections, which gyre does not do";

std::string who(Rank rank, int ranks) { return fmt::format("rank {} of {}", rank, ranks); }

/// Where NCCL goes on with it the program sees it when gyre is done, too.
Birth birth_of_ranks(const std::shared_ptr<Beside>& parent, ncclComm_t handle, ncclComm_t* made, const char* how) {
  Birth own{who(parent->rank, parent->size) + how, made, {}, parent, handle};
  if (!parent->nccl_blocks && made != nullptr) own.place = &parent->parts.emplace_back(*made);
  return own;
}

/// Why gyre has no part in what is made of the parent's ranks with that config; empty: it may have.
std::string refusal(const Beside& parent, const ncclConfig_t* given) {
  if (encrypts) return not_encrypted;
  const auto chosen = settings(given, {parent.nccl_blocks});
  return chosen && chosen->blocking == parent.nccl_blocks ? "" : "one of it and of what it is made of does not block";
}

}  // namespace

void encrypt(bool from_now_on) { encrypts = from_now_on; }
bool encrypted() { return encrypts; }

std::vector<Birth> birth(ncclComm_t* made, int ranks, int rank, const ncclUniqueId& id) {
  const bool asked = offer().any() || has_meeting(id);
  if (made == nullptr || ranks < 2 || rank < 0 || rank >= ranks || !asked) {
    close_added_door(id);
    return {};
  }
  return {{who(rank, ranks), made, [=, is_encrypted = encrypts.load()](const Made& by_nccl) -> Result<Parts> {
             if (is_encrypted || by_nccl.result != ncclSuccess) close_added_door(id);
             if (is_encrypted) return Error{Code::invalid_usage, not_encrypted};
             if (by_nccl.result != ncclSuccess) return Parts();
             return meet(GYRE_TRY(added_meeting(id, rank, ranks)), by_nccl);
           }}};
}

std::vector<Birth> births(ncclComm_t* comms, int ranks) {
  if (!offer().any() || comms == nullptr || ranks < 2) return {};
  auto door = transport::open_door();
  if (!door) return {};
  const auto shared = std::make_shared<transport::Door>(*std::move(door));
  const uint64_t job = transport::random_number();
  std::vector<Birth> all;
  all.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back({who(rank, ranks), comms + rank, [=, is_encrypted = encrypts.load()](const Made& by_nccl) -> Result<Parts> {
                     if (by_nccl.result != ncclSuccess) return Parts();
                     if (is_encrypted) return Error{Code::invalid_usage, not_encrypted};
                     Meeting at{shared->rendezvous(rank, ranks), {}};
                     at.rendezvous.job = job;
                     return meet(at, by_nccl);
                   }});
  }
  return all;
}

Birth split_birth(const std::shared_ptr<Beside>& parent, ncclComm_t handle, ncclComm_t* made, int color, int key,
                  const ncclConfig_t* config) {
  Birth part = birth_of_ranks(parent, handle, made, ", split");
  part.make = [=, why = refusal(*parent, config)](const Made& by_nccl) -> Result<Parts> {
    if (by_nccl.result == ncclInvalidArgument) return Parts();  // of which NCCL tells the others nothing
    if (by_nccl.result == ncclInvalidUsage) return stay_away(*parent);
    return split(*parent, color, key, by_nccl, by_nccl.result == ncclSuccess ? why : "NCCL could not make it");
  };
  return part;
}

Birth shrink_birth(const std::shared_ptr<Beside>& parent, ncclComm_t handle, ncclComm_t* made, const std::vector<Rank>& without,
                   const ncclConfig_t* config) {
  Birth rest = birth_of_ranks(parent, handle, made, ", shrunk");
  rest.make = [=, why = refusal(*parent, config)](const Made& by_nccl) -> Result<Parts> {
    if (by_nccl.result != ncclSuccess) return Parts();
    if (!why.empty()) return Error{Code::invalid_usage, why};
    return shrink(*parent, without, by_nccl);
  };
  return rest;
}

}  // namespace gyre::plugin::nccl::wrap
