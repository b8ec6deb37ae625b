#include "plugin/nccl/table.h"

#include <dlfcn.h>

#include <cstring>

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

/// The NCCL that this program has loaded, or would load; null: there is none, or gyre goes by its name.
void* real_library() {
  for (const int how : {RTLD_NOLOAD, 0}) {
    void* library = ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL | how);
    if (library != nullptr) return ::dlsym(library, "gyre_nccl") == nullptr ? library : nullptr;
  }
  return nullptr;
}

Table table_of(void* library) {
  Table real{};
  for (const Row& row : rows) row.find(real, library, row.name);
  return real;
}

#define GYRE_OWN(result, name, parameters, arguments) &stand_alone::name,
constexpr Table own_table{NCCL_FUNCTIONS(GYRE_OWN)};
#undef GYRE_OWN

// A wrong option is not passed over: gyre's own functions say what is wrong with it.
Table wanted() {
  const auto config = Config::from_environment();
  void* real = config && *config->nccl == "auto" ? real_library() : nullptr;
  if (config) start_log(*config);
  log::info("NCCL's calls are answered by {}", real != nullptr ? "NCCL" : "gyre alone");
  return real != nullptr ? wrap::wrapped_table(table_of(real), *config) : own_table;
}

// Once for all, also where that has failed: a communicator of one of both is none of the other's.
Table choose() noexcept {
  Table chosen = own_table;
  guard("gyre alone answers NCCL's calls", [&]() -> Status {
    chosen = wanted();
    return {};
  });
  return chosen;
}

}  // namespace

const Table& table() noexcept {
  static const Table chosen = choose();
  return chosen;
}

}  // namespace gyre::plugin::nccl
