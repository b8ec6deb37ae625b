#include "transport/verbs/api.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace gyre::transport::verbs {
namespace {

constexpr const char* library_file = "libibverbs.so.1";

Api real;
const Api* fake_api = nullptr;

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

Status open_real() {
  // Never closed: its providers leave hooks in the process.
  void* library = dlopen(library_file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* text = dlerror();
    return Error{Code::system,
                 fmt::format("{} can't be opened: {}; apt-get install libibverbs1 ibverbs-providers, or dnf install libibverbs",
                             library_file, text != nullptr ? text : "dlopen does not say why")};
  }
#define GYRE_FIND(name)                   \
  find(library, "ibv_" #name, real.name); \
  if (!real.name) return Error{Code::system, fmt::format("{} has no function ibv_{}", library_file, #name)};
#define GYRE_FIND_NEWER(name) find(library, "ibv_" #name, real.name);
  GYRE_VERBS_FUNCTIONS(GYRE_FIND)
  GYRE_VERBS_NEWER_FUNCTIONS(GYRE_FIND_NEWER)
#undef GYRE_FIND
#undef GYRE_FIND_NEWER
  return {};
}

}  // namespace

Status load() {
  if (fake_api != nullptr) return {};
  static const Status opened = open_real();
  return opened;
}

const Api& api() { return fake_api != nullptr ? *fake_api : real; }

void use(const Api* fake) { fake_api = fake; }

}  // namespace gyre::transport::verbs
