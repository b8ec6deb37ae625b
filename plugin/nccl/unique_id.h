// What stands in a ncclUniqueId of gyre: where the ranks of a communicator meet. Whoever makes one listens from then on, as rank 0 will do,
// so that nobody comes before the door is there. With NCCL_COMM_ID=host:port in the environment all processes make the same one, and rank 0
// listens there when it joins.
#pragma once
#include "base/result.h"
#include "plugin/abi/nccl.h"
#include "transport/bootstrap.h"
#include "transport/private_fd.h"

namespace gyre::plugin::nccl {

/// `for_others`: rank 0 may be another process, which can't be where this one makes the communicators, too.
Result<ncclUniqueId> make_unique_id(bool for_others = true);

/// How a rank meets the others.
struct Meeting {
  transport::Rendezvous rendezvous;
  transport::PrivateFd door;  ///< rank 0's, which is to stay open until all have come
};
/// Takes the door of this process where it is rank 0's; for that only once. Errors: not an id of gyre's; one that another process made, or
/// that was used before.
Result<Meeting> meeting(const ncclUniqueId&, Rank rank, int ranks);
/// Nobody will meet there.
void close_door(const ncclUniqueId&);

// Where NCCL has made the id: it uses the first bytes (a magic number, an address, a count: at most 64 bytes in 2.6 to 2.32; what older
// ones use of the rest is not zero), and its ranks do no more with the others than to hash them, alike. So there gyre says where its ranks
// meet:
//
//   | 64 bytes of NCCL's | "gyre-at1" | u64 job | u16 port | addresses with commas, to the end, which is 0 |

/// Opens a door and writes where it is. Error, and the id stays as it is: those bytes are not all zero.
Status add_meeting(ncclUniqueId&);
bool has_meeting(const ncclUniqueId&);
/// As meeting().
Result<Meeting> added_meeting(const ncclUniqueId&, Rank rank, int ranks);
void close_added_door(const ncclUniqueId&);

}  // namespace gyre::plugin::nccl
