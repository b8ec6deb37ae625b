// What a result needs beside it to be believed, and to be had again: gyre's version and commit, the command, the date, the machine, the
// versions of what it was built with and ran with, and the options that were set.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "base/config.h"

namespace gyre::perf {

/// Now, as "2026-11-22T18:54:24Z".
std::string date_now();

/// "gyre", "commit", "command", "date"; "machine" and "versions", objects with a null for what there is none of; "config": the options that
/// were set, in the environment or by flags, by name. UCX's version is known once it has been opened.
nlohmann::json about_run(const std::string& command, const Config&);

}  // namespace gyre::perf
