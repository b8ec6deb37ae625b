#include "plugin/nccl/copies.h"

#include <dlfcn.h>
#include <link.h>

namespace gyre::plugin::nccl {
namespace {

int note_name(dl_phdr_info* object, size_t /*bytes*/, void* names) {
  if (object->dlpi_name != nullptr && *object->dlpi_name != '\0')
    static_cast<std::vector<std::string>*>(names)->emplace_back(object->dlpi_name);
  return 0;
}

/// Itself, not what it was linked with.
bool defines(void* library, const std::string& file, const char* symbol) {
  void* const found = ::dlsym(library, symbol);
  Dl_info where{};
  return found != nullptr && ::dladdr(found, &where) != 0 && where.dli_fname == file;
}

}  // namespace

void* open_loaded_nccl(const std::string& file) {
  if (file.find("nccl", file.rfind('/') + 1) == std::string::npos) return nullptr;
  void* const library = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr || (defines(library, file, "pncclGetUniqueId") && !defines(library, file, "gyre_nccl"))) return library;
  ::dlclose(library);
  return nullptr;
}

std::vector<std::string> loaded_nccls() {
  std::vector<std::string> files, nccls;
  ::dl_iterate_phdr(note_name, &files);
  for (const std::string& file : files) {
    void* const library = open_loaded_nccl(file);
    if (library == nullptr) continue;
    nccls.push_back(file);
    ::dlclose(library);
  }
  return nccls;
}

}  // namespace gyre::plugin::nccl
