// GYRE_TUNER_FILE: a profile (tuner_profile.h), where its text begins with a {, or rules (tuner_rules.h).
#pragma once
#include "plugin/tuner_rules.h"

namespace gyre::plugin {

/// What a file has, or why it can't be used. It depends on nothing but the file's bytes and gyre's version.
struct TunerFile {
  Result<std::vector<TunerRule>> rules;
  uint64_t hash = 0;          ///< of its bytes, which peers compare; 0: no file
  std::string predicted_for;  ///< the machine, of a profile in which nothing was measured; for people
};

/// A file is read once in a process: all of its communicators must have the same, and a warning says then where its choices were measured,
/// if not on such a machine, or with which NCCL, if not with this one. Empty path: no rules. The reference is good for the process's life.
/// Safe from any thread.
const TunerFile& tuner_file(const std::string& path);

}  // namespace gyre::plugin
