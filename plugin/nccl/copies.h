// The NCCLs that this process has loaded. A program may come to have two, such as a wheel's and the system's: what one has made the other
// does not know, and gyre, which stands before one of them, can't tell which. They are known by what they define, with twins, which tools
// that put their own functions before NCCL's lack, and by their files' names: a library that has an NCCL inside of it, as PyTorch's may,
// calls it as a program does.
#pragma once
#include <string>
#include <vector>

namespace gyre::plugin::nccl {

/// Their files; none of gyre's.
std::vector<std::string> loaded_nccls();
/// One that is loaded, to be closed; null: that file is none.
void* open_loaded_nccl(const std::string& file);

}  // namespace gyre::plugin::nccl
