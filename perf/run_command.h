// Runs a user's command to its end, or to a limit: in a process group of its own, of which nothing is left behind, with no input, and with
// its output kept. Knows nothing of what it does.
#pragma once
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace gyre::perf {

struct Finished {
  int code = 0;  ///< its exit code; 128 and the signal that ended it, as shells have it
  std::string out, err;

  /// "exit code 3", or with the name of the signal.
  std::string end() const;
  /// Of what it said, on stderr where there is any; a launcher's rule of dashes is none.
  std::string last_line() const;
};

/// What differs from this process's environment; nothing: that name is taken out.
using Variables = std::map<std::string, std::optional<std::string>>;

struct CommandLimits {
  std::chrono::seconds time;
  size_t output_bytes = 256 << 20;  ///< a thousand ranks' logs, and not all of a machine's memory
};

/// Error: it can't be started, or is over a limit. A signal that ends this process meanwhile ends the command first.
Result<Finished> run_command(const std::vector<std::string>& words, const Variables&, CommandLimits);

}  // namespace gyre::perf
