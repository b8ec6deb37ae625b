// Words of the bootstrap's messages that several of its files need.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "base/types.h"

namespace gyre::transport::bootstrap {

/// "rank 2", "ranks 0, 2", "ranks 0, 2-7": runs of four or more are shortened. Ascending.
std::string ranks_text(const std::vector<Rank>&);
/// "30 s", "0.25 s".
std::string seconds_text(std::chrono::milliseconds);
/// What an errno value means; safe from any thread.
std::string errno_text(int error);

}  // namespace gyre::transport::bootstrap
