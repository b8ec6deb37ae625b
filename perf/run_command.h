// Runs a user's command to its end, or to a time limit: in a process group of its own, which is ended as one, with no input, and with its
// output kept. Knows nothing of what it does.
#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace gyre::perf {

struct Finished {
  int code = 0;  ///< its exit code; 128 and the signal that ended it
  std::string out, err;

  /// Of what it said, on stderr where there is any; a launcher's rule of dashes is none.
  std::string last_line() const;
};

/// What differs from this process's environment; nothing: that name is taken out.
using Variables = std::map<std::string, std::optional<std::string>>;

/// Error: it can't be started, or the limit is over. A signal that ends this process meanwhile ends the command first.
Result<Finished> run_command(const std::vector<std::string>& words, const Variables&, std::chrono::seconds limit);

}  // namespace gyre::perf
