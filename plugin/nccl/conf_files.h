// NCCL's files of settings, lines of NAME=VALUE, as NCCL takes them, for where gyre stands alone. Beside it NCCL does so itself.
#pragma once
#include <string>
#include <vector>

namespace gyre::plugin::nccl {

/// NCCL_CONF_FILE's, or the user's in that folder where it names none; then the system's.
std::vector<std::string> conf_files(const std::string& home);
/// The same for this process's user.
std::vector<std::string> conf_files();
/// What the environment does not have yet comes into it, so that the first file counts; each variable is logged. Files that can't be read
/// are passed over.
void set_by_files(const std::vector<std::string>& files);

}  // namespace gyre::plugin::nccl
