#include "plugin/nccl/table.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "base/config.h"
#include "base/log.h"
#include "plugin/guard.h"
#include "plugin/nccl/callers.h"
#include "plugin/nccl/conf_files.h"
#include "plugin/nccl/connections.h"
#include "plugin/nccl/copies.h"
#include "plugin/nccl/errors.h"
#include "plugin/nccl/missing.h"
#include "plugin/nccl/wrap.h"

namespace gyre::plugin::nccl {
namespace {

template <auto slot>
void find(Table& table, void* library, const char* name) {
  void* found = ::dlsym(library, name);
  std::memcpy(&(table.*slot), &found, sizeof found);
  if (found != nullptr) return;
  Missing<slot>::name = name;
  table.*slot = Missing<slot>::call;
}

struct Row {
  const char* name;
  void (*find)(Table&, void* library, const char* name);
};
#define GYRE_ROW(result, name, parameters, arguments) {#name, find<&Table::name>},
constexpr Row rows[] = {NCCL_FUNCTIONS(GYRE_ROW)};
#undef GYRE_ROW

bool is_gyre(void* library) { return ::dlsym(library, "gyre_nccl") != nullptr; }

/// The NCCL that this program has loaded, or would load; null: there is none, or gyre goes by its name.
void* real_library() {
  for (const int how : {RTLD_NOLOAD, 0}) {
    void* library = ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL | how);
    if (library != nullptr) return is_gyre(library) ? nullptr : library;
  }
  return nullptr;
}

/// For programs that load gyre by NCCL's name.
Result<void*> library_at(const std::string& path) {
  const auto wrong = [&](std::string_view why) { return Error{Code::invalid_argument, fmt::format("GYRE_NCCL={}: {}", path, why)}; };
  if (path.find('/') == std::string::npos) return wrong("must be auto, off, or the path of an NCCL");
  void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return wrong(::dlerror());
  if (is_gyre(library)) return wrong("it is gyre, not NCCL");
  if (::dlsym(library, "ncclGetUniqueId") == nullptr) return wrong("it is no NCCL");
  return library;
}

/// Null: none is to be asked.
Result<void*> library_by(const std::string& option) {
  if (option == "off") return nullptr;
  return option == "auto" ? real_library() : library_at(option);
}

Table table_of(void* library) {
  Table real{};
  for (const Row& row : rows) row.find(real, library, row.name);
  return real;
}

#define GYRE_OWN(result, name, parameters, arguments) &stand_alone::name,
constexpr Table own_table{NCCL_FUNCTIONS(GYRE_OWN)};
#undef GYRE_OWN

struct Choice {
  Table table;
  std::optional<Table> nccl;  ///< below it; none: gyre stands alone
  Status status;              ///< of the NCCL that is to be asked
};

// A wrong option is not passed over: gyre's own functions say what is wrong with it.
Choice wanted() {
  const auto config = Config::from_environment();
  if (!config) return {own_table, {}, {}};
  start_log(*config);
  const auto real = library_by(*config->nccl);
  if (!real) return {own_table, {}, real.error()};
  if (gave_connections()) log::info("CUDA_DEVICE_MAX_CONNECTIONS is set to 32 by gyre, since it was not set");
  log::info("NCCL's calls are answered by {}", *real != nullptr ? "NCCL" : "gyre alone");
  if (*real == nullptr) return set_by_files(conf_files()), Choice{own_table, {}, {}};
  const Table nccl = table_of(*real);
  return {wrap::wrapped_table(nccl, *config), nccl, {}};
}

// Once for all, also where that has failed: a communicator of one of both is none of the other's.
Choice choose() noexcept {
  Choice choice{own_table, {}, {}};
  const ncclResult_t result = guard("gyre alone answers NCCL's calls", [&]() -> Status {
    choice = wanted();
    return {};
  });
  if (result != ncclSuccess) choice.status = Error{Code::system, "no memory"};  // other ranks' NCCL would wait for this one
  return choice;
}

const Choice& chosen() {
  alignas(Choice) static std::byte room[sizeof(Choice)];
  static const Choice& only = *new (room) Choice(choose());  // never destroyed: calls may come while the process ends
  return only;
}

/// What has called, and who answers it; kept for good, since another thread may be reading.
struct Known {
  Caller caller;
  std::optional<Table> own;  ///< none: the one that was chosen
  const Known* before;
};
std::atomic<const Known*> last_known{nullptr};

const Known* known(const Caller& caller) {
  const Known* one = last_known.load(std::memory_order_acquire);
  while (one != nullptr && one->caller != caller) one = one->before;
  return one;
}

bool is_chosen(const Table& nccl) { return chosen().nccl && chosen().nccl->ncclGetUniqueId == nccl.ncclGetUniqueId; }

// Whatever the name of its file is.
bool is_in_chosen(const Caller& caller) {
  return chosen().nccl && caller.has(reinterpret_cast<const void*>(chosen().nccl->ncclGetUniqueId));
}

// gyre calls nothing by these names: what would return to it NCCL has been called for, and has left to another of its functions by a jump.
std::optional<Table> own_functions(const Caller& caller) {
  if (*caller.file == '\0') return std::nullopt;
  if (caller.has(&last_known) || is_in_chosen(caller)) return chosen().nccl;
  void* const nccl = open_loaded_nccl(caller.file);
  if (nccl == nullptr) return std::nullopt;
  const Table own = table_of(nccl);
  ::dlclose(nccl);
  return own;
}

// Under no lock: the loader has one of its own, under which a library that is being loaded may call.
const Known* learn(const Caller& caller) {
  auto one = std::make_unique<Known>(Known{caller, own_functions(caller), nullptr});
  one->before = last_known.load(std::memory_order_acquire);
  do {
    if (const Known* const meanwhile = known(caller)) return meanwhile;
  } while (!last_known.compare_exchange_weak(one->before, one.get(), std::memory_order_acq_rel));
  const Known* const mine = one.release();
  if (mine->own && !is_chosen(*mine->own))
    log::warn("{} is called past gyre, which has no part in what it makes and runs; a program that opens NCCL by name may be told gyre's",
              caller.file);
  return mine;
}

}  // namespace

// Where an NCCL that the program calls past gyre leaves its last step to another of its functions, by a jump, that is taken for a call of
// the program's. NCCL's builds for x86-64 have no such jump (2.28.9).
const Table& table_for(const void* address) noexcept {
  const Caller caller = caller_at(address);
  const Known* one = known(caller);
  if (one == nullptr) {
    guard("who calls NCCL", [&]() -> Status {
      one = learn(caller);
      return {};
    });
  }
  return one != nullptr && one->own ? *one->own : chosen().table;
}

Result<Config> checked_config() {
  auto config = Config::from_environment();
  if (config && !chosen().status) return chosen().status.error();
  return config;
}

}  // namespace gyre::plugin::nccl
