#include "plugin/nccl/table.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "base/config.h"
#include "base/log.h"
#include "plugin/guard.h"
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
  Status status;  ///< of the NCCL that is to be asked
};

// A wrong option is not passed over: gyre's own functions say what is wrong with it.
Choice wanted() {
  const auto config = Config::from_environment();
  if (!config) return {own_table, {}};
  start_log(*config);
  const auto real = library_by(*config->nccl);
  if (!real) return {own_table, real.error()};
  log::info("NCCL's calls are answered by {}", *real != nullptr ? "NCCL" : "gyre alone");
  return {*real != nullptr ? wrap::wrapped_table(table_of(*real), *config) : own_table, {}};
}

// Once for all, also where that has failed: a communicator of one of both is none of the other's.
Choice choose() noexcept {
  Choice choice{own_table, {}};
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

}  // namespace

const Table& table() noexcept { return chosen().table; }

Result<Config> checked_config() {
  auto config = Config::from_environment();
  if (config && !chosen().status) return chosen().status.error();
  return config;
}

}  // namespace gyre::plugin::nccl
