// Words of the bootstrap's messages that several of its files need.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "base/text.h"  // errno_text
#include "base/types.h"

namespace gyre::transport::bootstrap {

/// "rank 2", "ranks 0, 2", "ranks 0, 2-7": runs of four or more are shortened. Ascending.
std::string ranks_text(const std::vector<Rank>&);
/// "30 s", "0.25 s".
std::string seconds_text(std::chrono::milliseconds);

}  // namespace gyre::transport::bootstrap
