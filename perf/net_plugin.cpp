#include "perf/net_plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

#include "perf/net_plugin_table.h"

namespace gyre::perf {

std::string_view result_name(ncclResult_t code) {
  switch (code) {
    case ncclSuccess:
      return "ncclSuccess";
    case ncclUnhandledCudaError:
      return "ncclUnhandledCudaError";
    case ncclSystemError:
      return "ncclSystemError";
    case ncclInternalError:
      return "ncclInternalError";
    case ncclInvalidArgument:
      return "ncclInvalidArgument";
    case ncclInvalidUsage:
      return "ncclInvalidUsage";
    case ncclRemoteError:
      return "ncclRemoteError";
    case ncclInProgress:
      return "ncclInProgress";
    case ncclTimeout:
      return "ncclTimeout";
  }
  return "unknown result";
}

namespace {

// One write per line: plugins log from several threads.
__attribute__((format(printf, 4, 0))) void print_line(const char* level, const char* file, int line, const char* format, va_list list) {
  char text[2048];
  std::vsnprintf(text, sizeof text, format, list);
  const std::string where = file != nullptr ? fmt::format("{}:{} ", file, line) : "";
  fmt::print(stderr, "{}plugin {}: {}\n", where, level, text);
}
void log_warnings(ncclDebugLogLevel level, unsigned long, const char* file, int line, const char* format, ...) {
  if (level != NCCL_LOG_WARN) return;
  va_list list;
  va_start(list, format);
  print_line("WARN", file, line, format, list);
  va_end(list);
}
void log_everything(ncclDebugLogLevel level, unsigned long, const char* file, int line, const char* format, ...) {
  va_list list;
  va_start(list, format);
  if (level == NCCL_LOG_WARN)
    print_line("WARN", file, line, format, list);
  else
    print_line(level == NCCL_LOG_TRACE ? "TRACE" : "INFO", nullptr, 0, format, list);  // `file` is a function's name there
  va_end(list);
}

using Library = std::shared_ptr<void>;
using Make = std::unique_ptr<NetPlugin> (*)(const Library&, int version, const void* table);

template <class Table>
std::unique_ptr<NetPlugin> make(const Library& library, int version, const void* found) {
  return std::make_unique<NetPluginTable<Table>>(library, version, *static_cast<const Table*>(found));
}
// From the oldest to the newest.
constexpr std::array<Make, newest_net_table - oldest_net_table + 1> makers{
    make<ncclNet_v5_t>, make<ncclNet_v6_t>,  make<ncclNet_v7_t>,  make<ncclNet_v8_t>,
    make<ncclNet_v9_t>, make<ncclNet_v10_t>, make<ncclNet_v11_t>, make<ncclNet_v12_t>,
};

const void* table_in(const Library& library, int version) {
  return dlsym(library.get(), fmt::format("ncclNetPlugin_v{}", version).c_str());
}

}  // namespace

ncclDebugLogger_t warnings_to_stderr() { return log_warnings; }
ncclDebugLogger_t everything_to_stderr() { return log_everything; }

Error NetPlugin::error(const char* call, ncclResult_t code) const {
  // What the plugin may not return is an error of the plugin's.
  const bool known = code >= ncclUnhandledCudaError && code <= ncclTimeout && code != ncclInProgress;
  return {known ? static_cast<Code>(code) : Code::internal,
          fmt::format("net plugin {}, table {}: {}: {}{}", name(), version(), call, result_name(code),
                      known ? "" : fmt::format(" ({}), which no plugin may return", static_cast<int>(code)))};
}

Result<std::unique_ptr<NetPlugin>> NetPlugin::open(const std::string& path, std::optional<int> version) {
  const auto invalid = [&](const std::string& what) { return Error{Code::invalid_argument, fmt::format("net plugin {}: {}", path, what)}; };
  if (version && (*version < oldest_net_table || *version > newest_net_table)) {
    return invalid(fmt::format("table {} is none of {} to {}", *version, oldest_net_table, newest_net_table));
  }
  if (path.empty()) return invalid("no path");  // which would be this program
  void* opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return invalid(fmt::format("cannot be opened: {}", dlerror()));
  const Library library(opened, [](void* handle) { dlclose(handle); });
  std::vector<int> there;
  for (int v = newest_net_table; v >= oldest_net_table; --v) {
    const void* table = table_in(library, v);
    if (table == nullptr) continue;
    if (version.value_or(v) == v) return makers[static_cast<size_t>(v - oldest_net_table)](library, v, table);
    there.push_back(v);
  }
  if (there.empty()) return invalid("has no table ncclNetPlugin_v5 to _v12, so it is no net plugin");
  return invalid(fmt::format("has no table {}, but {}", *version, fmt::join(there, ", ")));
}

}  // namespace gyre::perf
