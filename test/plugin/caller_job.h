// One rank's part in a run of the caller: what it was told on the command line, which connections there are, and what it says. The same on
// all ranks but for the rank. Knows no plugin.
#pragma once
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "base/types.h"
#include "test/plugin/mailbox.h"
#include "test/plugin/script.h"

namespace gyre::test {

using Clock = std::chrono::steady_clock;

/// Where a rank can be told to die, by --die; `none` for never.
enum class Point { none, listening, connecting, connected, accepting, accepted, registered, sending, receiving, idle, closing };
inline constexpr const char* point_names[] = {"none",       "listening", "connecting", "connected", "accepting", "accepted",
                                              "registered", "sending",   "receiving",  "idle",      "closing"};

/// A connection to be made; its number is the same at both ends.
struct Edge {
  int number = 0;
  Rank from = 0, to = 0;
};

struct Job {
  Rank rank = 0;
  int ranks = 2;
  int channels = 1;  ///< connections from one rank to another
  int contexts = 1;  ///< communicators of each process, each with all of the connections
  std::string pattern = "ring";
  Traffic traffic;
  bool silent = false;                ///< senders never send: receivers stay with what they posted
  bool deaf = false;                  ///< receivers never receive
  Point die = Point::none;            ///< of this rank
  std::chrono::seconds patience{30};  ///< without any progress; then the rank aborts, as a user would
  Mailbox mailbox{{}};
  int round = 0;

  /// All of the connections of a communicator.
  std::vector<Edge> edges() const;
  /// What a name in the mailbox begins with, so that communicators and rounds do not meet.
  std::string label(int context) const { return fmt::format("round{}.context{}", round, context); }
  void at(Point point) const {
    if (point == die) std::raise(SIGKILL);
  }
  /// A line on stdout, beginning with the clock that all processes of a host share, in seconds.
  void say(const std::string& text) const;
};

/// Set by signals: all ranks of this process close what they have.
extern std::atomic<bool> told_to_abort;

}  // namespace gyre::test
