#include "plugin/net_abi_properties.h"

#include <mutex>
#include <set>
#include <string>

namespace gyre::plugin {
namespace {

std::mutex kept_texts_mutex;

// Never destroyed: NCCL may look at the texts until the process ends.
std::set<std::string>& kept_texts() {
  static auto& texts = *new std::set<std::string>;
  return texts;
}

}  // namespace

char* kept_text(const std::string& text) {
  if (text.empty()) return nullptr;
  const std::lock_guard lock(kept_texts_mutex);
  return const_cast<char*>(kept_texts().insert(text).first->c_str());  // NOLINT(cppcoreguidelines-pro-type-const-cast): NCCL's type
}

}  // namespace gyre::plugin
