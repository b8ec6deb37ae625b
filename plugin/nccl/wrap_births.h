// What gyre does of its own for communicators that NCCL makes: for each of this process's ranks a birth (wrap_forming.h).
#pragma once
#include <memory>
#include <vector>

#include "plugin/nccl/wrap_forming.h"

namespace gyre::plugin::nccl::wrap {

/// NCCL encrypts the connections of communicators that are made from now on, in which gyre has no part.
void encrypt(bool from_now_on);
bool encrypted();

/// Of ranks that each bring the unique id; none: where nobody asks for gyre.
std::vector<Birth> birth(ncclComm_t* made, int ranks, int rank, const ncclUniqueId&);
/// Of ranks that are all of this process.
std::vector<Birth> births(ncclComm_t* comms, int ranks);
/// Of a parent's ranks.
Birth split_birth(const std::shared_ptr<Beside>& parent, ncclComm_t, ncclComm_t* made, int color, int key, const ncclConfig_t*);
Birth shrink_birth(const std::shared_ptr<Beside>& parent, ncclComm_t, ncclComm_t* made, const std::vector<Rank>& without,
                   const ncclConfig_t*);

}  // namespace gyre::plugin::nccl::wrap
