// Up to which sizes, and from which on, ranks of a host use which direct form (schedule/direct.h): as measured, in constants.json. Where
// none of them is used, messages carry the call.
#pragma once
#include <cstddef>

namespace gyre::topo {

/// In bytes, but for elements and ranks. Upper ones that are 0 do not bound.
struct DirectBounds {
  size_t shown = 0;         ///< of its input that a rank shows to others as a copy even where they could be mapped
  size_t shown_rooted = 0;  ///< the same of a call with a root
  /// Input of an all-reduce that all ranks read though it could be bounced: so many elements, but not less and not more than these bytes.
  size_t read_by_all_elements = 0, read_by_all_least = 0, read_by_all_most = 0;
  bool bounced_scatters = false;      ///< whether reduce-scatters are bounced
  size_t bounced_most_scattered = 0;  ///< of their input
  bool bounced_all_to_all = false;
  int attached_ranks = 0;  ///< between which blocks can be read straight
  /// Whether that is for blocks, too, that copies can show; never for those of a call with a root.
  bool attached_shown = false;
  size_t attached_least = 0, attached_least_rooted = 0;  ///< of a block
  size_t attached_most_rooted = 0;                       ///< of a block, too
  size_t attached_most_read = 0;                         ///< by a rank, its own part included
  bool attached_reduces = false;                         ///< whether a reduce-scatter's blocks can be read straight, too

  bool attaches(int ranks) const { return attached_ranks == 0 || ranks <= attached_ranks; }
};

}  // namespace gyre::topo
