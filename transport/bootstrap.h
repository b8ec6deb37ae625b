// How the ranks of a job find each other, agree, and learn that one of them is gone. A star of TCP connections to rank 0, kept for the
// life of the communicator and served by one thread per rank that sleeps in poll(): the death of a rank reaches all others while their
// own threads compute. Carries set-up and bad news only, never a collective's data.
// Rank 0 that leaves first takes the watch with it: the others do not call that a death, but hear of no other's any more.
// It must not know: schedules, kernels, the engine; a call is described to it as text of `key=value` words.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace gyre::transport {

/// The most that one rank can give to all_gather().
inline constexpr size_t max_gather_bytes = (size_t{16} << 20) - 64;

class Bootstrap;

/// Where and as whom to join.
struct Rendezvous {
  Rank rank = 0;
  int size = 1;
  std::string host = "127.0.0.1";  ///< rank 0's: a name or an address, or several with commas, which are all tried
  uint16_t port = 0;               ///< of rank 0; 0 only with listen_fd
  int ports = 1;                   ///< rank 0 takes the first free one of port … port+ports-1, the others try them all
  uint64_t job = 0;                ///< tells this job's ranks from strangers
  int listen_fd = -1;  ///< rank 0: a listening socket made by the launcher instead of host and port; made non-blocking, not closed
  std::chrono::milliseconds timeout{30000};
  /// Not 0: rank 0 listens since before the others knew where, and nobody else knows. Where nobody has listened for so long, it is gone;
  /// and a rank that is not of the job as rank 0 knows it, or is there already, ends it for all.
  std::chrono::milliseconds gone_after{0};
  const std::atomic<bool>* cancelled = nullptr;  ///< once it is true, which any thread may make it, join() ends soon with an error
  const Bootstrap* of = nullptr;                 ///< the job whose ranks meet: once it has failed, join() ends soon with that
};

/// What a rank has begun with another, and waits for, in calls that only some ranks make. Messages are counted from 1, per pair and
/// direction.
struct Pair {
  Rank peer = 0;
  uint64_t sends = 0;            ///< begun
  uint64_t receives = 0;         ///< begun
  uint64_t awaited_send = 0;     ///< the first that is not out; 0: none
  uint64_t awaited_receive = 0;  ///< the first that is not here; 0: none
};

class Bootstrap {
 public:
  /// Joins the job; returns when all ranks have. Errors name the missing ranks, the address, or what another rank said.
  static Result<std::unique_ptr<Bootstrap>> join(const Rendezvous&);
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;
  ~Bootstrap();  ///< says goodbye: after this our silence is no death

  Rank rank() const;
  int size() const;

  /// Every rank's bytes by rank; blocks until all ranks have called, or the job has failed, which it has after the limit; 0: that of all.
  /// One thread at a time.
  Result<std::vector<std::string>> all_gather(std::string_view mine, std::chrono::milliseconds limit = {});
  /// Its bytes for each that comes, to which this rank does not come any more: none waits for it, also once it has left. Same thread.
  void stay_away(std::string_view mine);
  /// From now on a limit of all that name none; 0, as at first: none. After it the call is an error on all ranks, also on those that come
  /// later, and the job goes on. Same thread.
  void limit_gathers(std::chrono::milliseconds);
  std::chrono::milliseconds limit_of_gathers() const;
  Status barrier();

  /// True once failure() has something or asked() is true. One relaxed load: may be polled in a spin loop.
  bool attention() const;
  /// Why this job can't go on (a rank died, gave up, left while others wait, or calls differ), or null. Once set it stays.
  const Error* failure() const;
  /// True while rank 0 wants to know in which call this rank is; answered by describe().
  bool asked() const;
  /// True once that rank has said goodbye, which alone is no failure: a fast rank may leave first. For who waits for it in vain.
  bool left(Rank) const;

  /// Says in which call this rank is: number `call`, hash `plan`, text such as "all_reduce count=8 type=float op=sum algorithm=ring". Rank
  /// 0 compares calls of the same number; where their plans differ, every rank's failure() says which rank differs in which word. `urgent`:
  /// a difference was seen. In either case the ranks that have not described that call are asked; those that do not answer within a second
  /// are reported as being in no call.
  /// `pairs`: of all calls among some ranks so far. Where one of them waits, this is such a call, and `call` is the number of the next one
  /// of all ranks; it is then not compared with that, but ranks that wait for each other because their orders of calls differ are found.
  void describe(uint64_t call, uint64_t plan, std::string_view text, bool urgent, std::span<const Pair> pairs = {});
  /// What was described is over.
  void finished();
  /// Writes down that this rank makes call `number` of all ranks, or has refused it: a few stores. One thread. When a rank has described a
  /// call, rank 0 compares what all have made, also of ranks that compute or have left; the first difference is every rank's failure().
  void made(uint64_t number, uint64_t plan, bool refused = false);
  /// What a plan is called, before the first made() of it.
  void name(uint64_t plan, std::string_view text);
  /// Tells the others that this rank gives up and why, which they hear also where its process ends as soon as this returns, or as
  /// failure() says it: that is this rank's own failure, too, unless it has one.
  void fail(const Error&);
  /// Waits for failure(); null when there is none after `limit`.
  const Error* wait_for_failure(std::chrono::milliseconds limit);

 private:
  struct State;
  explicit Bootstrap(std::unique_ptr<State>);
  std::unique_ptr<State> state_;
};

}  // namespace gyre::transport
