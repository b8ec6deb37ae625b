// A call made concrete for ranks that reach each other's memory: the forms that it can take (schedule/direct.h), and for each what this
// rank must know of it. Made once per call, and kept.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/arguments.h"
#include "kernels/reduce_host.h"
#include "schedule/direct.h"
#include "topo/direct_bounds.h"
#include "topo/direct_cost.h"

namespace gyre::engine {

/// A schedule::Pass of this rank, in elements and bytes.
struct BoundPass {
  struct Place {
    Rank rank = 0;
    size_t offset = 0;  ///< bytes from the beginning of its input, or output
  };
  std::vector<Place> from, to;
  size_t count = 0;  ///< elements, at least one
};

/// A rank's, of such a call; those without elements are none. `own_stride`: elements from one block of its own buffers to the next, where
/// the call is a piece of each; 0: they follow each other.
std::vector<BoundPass> bound_passes(const schedule::Direct&, Rank, const Call&, size_t own_stride = 0);

/// One of the forms, for one rank.
struct DirectForm {
  std::shared_ptr<const schedule::Direct> schedule;
  std::vector<BoundPass> passes;
  std::vector<Rank> reached;  ///< whose memory this rank reads or writes
  std::vector<Rank> users;    ///< who reads or writes this rank's memory
  /// Where every pass combines two ranks' elements as they are, and writes them to one place or two: by which loops, in default numerics.
  const kernels::Arithmetic* combines = nullptr;

  /// For which it stands.
  std::string_view family() const { return schedule->staged ? "one_shot" : "two_shot"; }
};

/// How mapped runs on copies, piece by piece of each block: half of a bounce buffer has room for one.
struct Bounced {
  /// In bytes from the beginning of a piece in this rank's buffers, and of the half.
  struct Range {
    size_t own = 0, bounced = 0, bytes = 0;
  };
  struct Piece {
    DirectForm form;
    std::vector<Range> read, written;  ///< by other ranks, of this rank's input and output
  };
  size_t count = 0;  ///< elements of a piece of a block; the last may have fewer
  size_t pieces = 0;
  Piece each, last;

  const Piece& piece(size_t index) const { return index + 1 < pieces ? each : last; }
};

struct DirectPlan {
  Call call;
  std::string text{};  ///< "all_reduce count=8 type=float op=sum algorithm=one_shot"
  uint64_t hash = 0;
  std::vector<Extent> extents{};       ///< by rank
  bool ordered = false;                ///< reductions are by the canonical tree
  std::optional<DirectForm> staged{};  ///< none: inputs do not fit the board, or are bounced
  std::optional<DirectForm> mapped{};  ///< none: not worth a second meeting
  std::optional<Bounced> bounced{};    ///< mapped also runs, on copies, where no rank's buffers lie in heaps
  std::optional<DirectForm> read{};    ///< runs by system calls where not all ranks' buffers do

  bool contested = false;   ///< whether that is the faster way its calls find out (contest.h)
  size_t unread_bytes = 0;  ///< of an input with a block for each rank, each rank's own, which no other reads

  /// The form that runs where all ranks' buffers lie so, read `straight` or not; null: messages carry the call.
  const DirectForm* form(BufferKind, bool straight = true) const;
  topo::BufferAccess access(const DirectForm&, BufferKind) const;
};

/// Forms with their proofs, by collective and root.
class DirectForms {
 public:
  /// `attached`: ranks reach each other's ordinary memory.
  DirectForms(Rank rank, int ranks, const topo::DirectBounds& bounds, size_t bounce_bytes, bool attached)
      : rank_(rank), ranks_(ranks), bounds_(bounds), bounce_bytes_(bounce_bytes), attached_(attached) {}
  /// Error: Code::internal, a form does not compute the collective.
  Result<DirectPlan> plan(const Call&, bool ordered, bool may_stage, bool may_map);

 private:
  enum class Kind : uint8_t { staged, mapped, read };

  Result<DirectForm> form(const Call&, Kind, size_t own_stride = 0);
  Result<Bounced::Piece> piece(const Call&, size_t own_stride);
  size_t most_read_by_all(const Call&) const;
  size_t staged_at_best(Collective) const;
  Result<Bounced> bounced(const Call&);
  bool may_bounce(const Call&, size_t input_bytes) const;
  bool attaches(const Call&, bool shows) const;

  Rank rank_;
  int ranks_;
  topo::DirectBounds bounds_;
  size_t bounce_bytes_;  // of each rank's bounce buffer
  bool attached_;
  std::map<std::tuple<Collective, Rank, Kind>, std::shared_ptr<const schedule::Direct>> proven_;
};

}  // namespace gyre::engine
