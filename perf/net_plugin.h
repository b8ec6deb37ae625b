// Opens a NCCL net plugin, anybody's, and calls it through the newest table that it has, or a named one: one C++ interface for table
// versions 5 to 12. What an older table lacks is filled in as NCCL's own adapters do, so that callers see version 12 only.
// Setting up returns Results, worded with the plugin, its table and the call; the calls of the data path hand on the plugin's own
// result, for error() to word. Threads: those that the plugin allows. It must not know: gyre's plugin, nor what is done with one.
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "plugin/abi/net_table.h"

namespace gyre::perf {

inline constexpr int oldest_net_table = 5;
inline constexpr int newest_net_table = 12;

/// What listen fills and the sender's connect gets, again and again, in the same memory.
using NetHandle = std::array<std::byte, NCCL_NET_HANDLE_MAXSIZE>;

/// Loggers to give to a plugin: its lines go to stderr, warnings only, or what it tells besides too.
ncclDebugLogger_t warnings_to_stderr();
ncclDebugLogger_t everything_to_stderr();

/// What a plugin is started with; older tables take part of it.
struct NetInit {
  uint64_t communicator = 0;
  int traffic_class = NCCL_NET_TRAFFIC_CLASS_UNDEF;
  ncclDebugLogger_t logger = warnings_to_stderr();
  ncclProfilerCallback_t profiler = nullptr;  ///< null: one that does nothing, as NCCL gives where no profiler is loaded
};

/// "ncclSystemError"
std::string_view result_name(ncclResult_t);

class NetPlugin {
 public:
  /// Loads the library as NCCL does. No version: the newest table there is. Errors name what the library has instead.
  static Result<std::unique_ptr<NetPlugin>> open(const std::string& path, std::optional<int> version = {});
  NetPlugin(const NetPlugin&) = delete;
  NetPlugin& operator=(const NetPlugin&) = delete;
  virtual ~NetPlugin() = default;  ///< unloads it

  int version() const { return version_; }
  std::string_view name() const { return name_; }
  /// The table itself, an ncclNet_vN_t, for whoever must see how a call leaves its arguments.
  const void* table() const { return table_; }
  /// "net plugin gyre, table 12: isend: ncclRemoteError"
  Error error(const char* call, ncclResult_t) const;

  /// The context, null before table 11, for listen, connect and finalize.
  virtual Result<void*> init(const NetInit&) = 0;
  virtual Status finalize(void* context) = 0;  ///< nothing to be called before table 11
  virtual Result<int> devices() = 0;
  virtual Result<ncclNetProperties_v12_t> properties(int device) = 0;
  virtual Result<int> make_virtual_device(std::span<const int> members) = 0;
  virtual Status set_attributes(void* context, ncclNetAttr_v12_t) = 0;  ///< a hint; older tables do without

  virtual Result<void*> listen(void* context, int device, NetHandle&) = 0;
  virtual Result<void*> connect(void* context, int device, NetHandle&) = 0;  ///< null: call again
  virtual Result<void*> accept(void* listen_comm) = 0;                       ///< null: call again
  virtual Result<void*> register_memory(void* comm, void* data, size_t bytes, int type) = 0;
  virtual Result<void*> register_dmabuf(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd) = 0;
  virtual Status deregister(void* comm, void* mhandle) = 0;
  virtual Status close_send(void*) = 0;
  virtual Status close_recv(void*) = 0;
  virtual Status close_listen(void*) = 0;

  // As in table 12; *request is handed over as it is found, but for tables that know no hint in it.
  virtual ncclResult_t isend(void* comm, void* data, size_t bytes, int tag, void* mhandle, void** request) = 0;
  virtual ncclResult_t irecv(void* comm, int n, void** data, size_t* bytes, int* tags, void** mhandles, void** request) = 0;
  virtual ncclResult_t iflush(void* comm, int n, void** data, int* bytes, void** mhandles, void** request) = 0;
  virtual ncclResult_t test(void* request, int* done, int* sizes) = 0;
  virtual ncclResult_t consumed(void* comm, int n, void* request) = 0;  ///< after a receive is done; nothing where there is no such slot

 protected:
  NetPlugin(std::shared_ptr<void> library, int version, const void* table, const char* name)
      : library_(std::move(library)), version_(version), table_(table), name_(name) {}

 private:
  std::shared_ptr<void> library_;  // shared: the search for a table holds it too, until it has found one
  int version_;
  const void* table_;
  std::string name_;
};

}  // namespace gyre::perf
