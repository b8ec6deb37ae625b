// What the executor drives until it is done: the machines of a collective, or a group of sends and receives. It must not know how to wait.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "transport/bootstrap.h"

namespace gyre::engine {

/// A call as all ranks must know it, whatever carries it.
struct Identity {
  uint64_t number = 0;  ///< of calls so far
  uint64_t word = 0;    ///< that goes with all that ranks show or send
  uint64_t plan = 0;    ///< hash of the text
  const std::string* text = nullptr;
};

/// How long nothing may move in work that is waited for; none: for ever.
using TimeLimit = std::optional<std::chrono::milliseconds>;

class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  struct Moved {
    bool any = false;   ///< something was done
    bool done = false;  ///< all of it is done, and no message is read from or written to the user's memory any more
  };
  /// Does what can be done now. Never blocks, allocates nothing.
  virtual Moved move() = 0;

  // What follows is for when nothing moves.

  /// Who sent a message that is not of this work; -1: nobody.
  virtual Rank stranger() const = 0;
  /// A mismatch that this rank can word by itself.
  virtual std::optional<Error> wrong() const { return std::nullopt; }
  virtual TimeLimit limit() const { return std::nullopt; }
  /// What it waits for is this rank's own doing, a GPU's, to which no limit applies.
  virtual bool waits_for_itself() const { return false; }
  /// The ranks without which it can't go on.
  virtual std::vector<Rank> awaited() const = 0;
  /// A rank without whose doing nothing can move, or that can do the last thing that is missing; -1: there is no such one.
  virtual Rank awaits_only() const { return -1; }
  /// "for a message from rank 2 in step 3 (r <2 =out[0]) of round 0".
  virtual std::string where() const = 0;

  /// What rank 0 is told of it (Bootstrap::describe).
  struct Description {
    uint64_t call = 0;
    uint64_t plan = 0;
    std::string text;  ///< "all_reduce count=8 type=float op=sum algorithm=ring"
  };
  virtual Description description() const = 0;
  /// Of calls among some ranks, this work's included where it is one.
  virtual std::vector<transport::Pair> pairs() const = 0;
};

}  // namespace gyre::engine
