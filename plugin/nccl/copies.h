// The NCCLs that this process has loaded. A program may come to have two, such as a wheel's and the system's: what one has made the other
// does not know, and gyre, which stands before one of them, can't tell which.
#pragma once
#include <string>
#include <vector>

namespace gyre::plugin::nccl {

/// Their files; none of gyre's.
std::vector<std::string> loaded_nccls();

}  // namespace gyre::plugin::nccl
