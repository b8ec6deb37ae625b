// Which schedule a communicator runs for a call: the family, by option or by price, and the shape that it is made for. A pure function
// of what all ranks know, so that they choose alike.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/result.h"
#include "engine/arguments.h"
#include "engine/facts.h"
#include "topo/constants.h"
#include "topo/select.h"

namespace gyre::engine {

/// What ranks' kernels on GPUs have for each other, beside messages.
struct OnGpus {
  bool packets = false;  ///< they leave some (kernels/packet.h)
  bool mapped = false;   ///< they reach each other's buffers (device_mapped.h)
};

/// What does not change from call to call.
struct Circumstances {
  int ranks = 1;
  size_t channels = 0;             ///< GYRE_CHANNELS; 0: as the family needs
  std::string algorithm = "auto";  ///< GYRE_ALGORITHM
  std::vector<int> grid;           ///< GYRE_GRID; empty: none was given
  Placed placed;                   ///< used where no grid was given, and sums may be in any order
  topo::Costs costs;               ///< of GYRE_CONSTANTS, for ranks that are joined like these
  schedule::Cutting cutting;
  bool ordered = false;              ///< GYRE_NUMERICS
  size_t memory_bytes = 0;           ///< GYRE_MEMORY_BYTES, the least of all ranks; 0: no bound
  size_t scratch_room = SIZE_MAX;    ///< what that leaves for scratch
  bool slots = true;                 ///< topo::Query::slots
  schedule::RankPairs missing{};     ///< ranks that are not joined
  std::vector<std::string> ports{};  ///< near the ranks' GPUs
  OnGpus ways{};
};
/// `ports`: near the ranks' GPUs, by which verbs goes. Error: a GYRE_GRID that is none for so many ranks, or GYRE_CONSTANTS that can't be
/// read or lack this kind of machine.
Result<Circumstances> circumstances(const Config&, const std::vector<Facts>&, const topo::ConstantsText&,
                                    std::vector<std::string> ports = {});
/// Reads GYRE_CONSTANTS for it.
Result<Circumstances> circumstances(const Config&, const std::vector<Facts>&);
/// The machine of the constants that ranks so joined run on: "host", or "host_ucx", "host_verbs" or "host_tcp" where that joins also the
/// ranks of a host; with "_crowded" where a host has more ranks than processors. Where `auto` joins hosts by verbs, what is between
/// them is as "host_verbs" has it; where that link is the typical one compiled in, it is as fast as the ranks' ports (nics.h).
std::string machine(const Config&, const std::vector<Facts>&);

/// What collectives on memory of GPUs cost. `gpus`: the machine "gpu" of the constants, where ranks of a host reach each other's, or
/// "gpu_pinned", where their messages go by memory of the host; what goes to another host goes by that, and then as `hosts` has it. The
/// NICs of a host that are faster than that serve several ranks at a time.
topo::Costs on_gpus(const topo::Costs& hosts, topo::Costs gpus);

struct Choice {
  std::string family;
  topo::Shape shape;                        ///< for positions
  std::vector<schedule::RankOrder> orders;  ///< the rank at each: on all channels, or on each its own; empty: its number
  std::string instead;                      ///< why it is not the algorithm that was named; empty: it is, or none was
  double seconds = 0;                       ///< predicted; 0: of one that was named
};
/// ", along 2 channels over GPUs": how a schedule in these orders goes; empty: by the ranks' numbers.
std::string along(const std::vector<schedule::RankOrder>&);
/// "ring: all_reduce between 4 ranks": what is proven once.
std::string key(const Choice&);
/// What was found not to run, by key, and why.
using Excluded = std::map<std::string, std::string, std::less<>>;
/// What can't run in any order any more is refused, with the reason, and comes last.
void refuse(topo::Choice&, const Circumstances&, const Call&, const Excluded&);
/// Error: the named algorithm does not exist, the options contradict each other, or nothing is left.
/// `plays`: as topo::Query's.
Result<Choice> choose(const Circumstances&, const Call&, topo::Profiles&, const Excluded& = {}, bool plays = true);
/// The call's sums must be those of the canonical tree. Where nothing is reduced, or integers are, whose sums wrap, or the largest or
/// smallest is taken, the bits are the same in any order, and any algorithm will do.
bool must_be_ordered(const Circumstances&, const Call&);
/// What is chosen from for a call when no algorithm is named.
topo::Query query(const Circumstances&, const Call&, bool plays = true);

/// Channels on which every pair is connected: what any family may need of them.
size_t connected_channels(const Config&);

}  // namespace gyre::engine
