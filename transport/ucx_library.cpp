#include "transport/ucx_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/unique.h"

namespace gyre::transport::ucx {
namespace {

constexpr const char* ucp_file = "libucp.so.0";
constexpr int open_flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;

using Loaded = Unique<void, dlclose>;

Loaded if_loaded(const char* file) { return Loaded(dlopen(file, RTLD_LAZY | RTLD_NOLOAD)); }

/// A global symbol of the program by which UCX would call another UCX than the one that we are about to open; null: none.
const void* another_ucx(std::span<const char* const> names) {
  const struct {
    std::string_view prefix;
    Loaded library;
  } parts[] = {{"ucp_", if_loaded(ucp_file)}, {"uct_", if_loaded("libuct.so.0")}, {"ucs_", if_loaded("libucs.so.0")}};
  for (const char* function : names) {
    const void* global = dlsym(RTLD_DEFAULT, function);
    if (global == nullptr) continue;
    for (const auto& part : parts) {
      if (!std::string_view(function).starts_with(part.prefix)) continue;
      if (!part.library || dlsym(part.library.get(), function) != global) return global;
    }
  }
  return nullptr;
}

/// A library that prefers its own symbols gets libc's malloc, and would give to it what others took from the program's: sanitizers have
/// such mallocs (and end the process at such a dlopen), and so have other allocators.
bool malloc_is_libcs() {
  Dl_info libc{}, malloc{};
  return dladdr(reinterpret_cast<const void*>(&gnu_get_libc_version), &libc) != 0 && dladdr(dlsym(RTLD_DEFAULT, "malloc"), &malloc) != 0 &&
         libc.dli_fbase == malloc.dli_fbase;
}

std::atomic<bool> beside_another{false};

/// UCX opens its transports in files of their own when it is first used, and not in the way that is needed here; it takes those that are
/// open already. One that can't be opened (its hardware's library is not there) UCX does without, too.
void open_modules(const void* library) {
  std::array<std::filesystem::path, 2> folders{
      std::filesystem::path(file_of(dlsym(const_cast<void*>(library), "ucs_status_string"))).parent_path() / "ucx"};
  if (const char* named = std::getenv("UCX_MODULE_DIR")) folders[1] = named;
  for (const auto& folder : folders) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
      if (entry.path().filename().string().ends_with(".so.0")) (void)dlopen(entry.path().c_str(), open_flags | RTLD_DEEPBIND);
    }
  }
}

std::string why_dlopen_failed() {
  const char* text = dlerror();
  return text != nullptr ? text : "dlopen does not say why";
}

}  // namespace

// A program that names `environ` has it in itself, and libc goes by that one; the variable inside libc stays null.
void renew_environment() {
  if (!beside_another) return;
  const auto libc = if_loaded("libc.so.6");
  auto* const inside = libc ? static_cast<char***>(dlsym(libc.get(), "environ")) : nullptr;
  if (inside != nullptr) *inside = environ;
}

std::string file_of(const void* symbol) {
  Dl_info info{};
  return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "an unknown file";
}

std::string file_of_library(void* library) {
  const link_map* map = nullptr;
  return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name != nullptr ? map->l_name : "an unknown file";
}

Result<void*> open_library(std::span<const char* const> names) {
  const void* another = if_loaded(ucp_file) ? nullptr : another_ucx(names);
  if (another != nullptr && !malloc_is_libcs()) {
    return Error{Code::system, fmt::format("this program has another UCX ({}), from which a second one can't be kept apart where malloc is "
                                           "not libc's but that of {}",
                                           file_of(another), file_of(dlsym(RTLD_DEFAULT, "malloc")))};
  }
  beside_another = another != nullptr;
  renew_environment();
  void* library = dlopen(ucp_file, another != nullptr ? open_flags | RTLD_DEEPBIND : open_flags);
  if (library == nullptr) return Error{Code::system, why_dlopen_failed()};
  if (another != nullptr) open_modules(library);
  return library;
}

}  // namespace gyre::transport::ucx
