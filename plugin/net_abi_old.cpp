// The tables of versions 5 to 11. Each function below is an older form of a slot; a table takes, of all forms that a slot ever had, the one
// of its own type. Before version 11 NCCL knew no contexts: one is made for the process, and one for each traffic class that version 10
// connects with.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "plugin/guard.h"
#include "plugin/net.h"
#include "plugin/net_abi.h"
#include "plugin/net_abi_arguments.h"
#include "plugin/net_abi_properties.h"
#include "plugin/net_log.h"

namespace gyre::plugin::older {
namespace {

/// Null before the first init.
std::atomic<Context*> process_context{nullptr};
std::mutex contexts_mutex;

/// Nothing tells the end of these tables' use, so a context stays; a repeated init finds it again.
Result<Context*> context_of(int traffic_class) {
  static auto& contexts = *new std::map<int, Context*>;
  const std::lock_guard lock(contexts_mutex);
  const auto [found, is_new] = contexts.try_emplace(traffic_class, nullptr);
  if (found->second != nullptr) return found->second;
  auto opened = open(0, traffic_class);
  if (opened)
    found->second = *opened;
  else
    contexts.erase(found);
  return opened;
}

// Forms that never changed, or only long before.
using newest::accept, newest::close_comm, newest::close_listen, newest::connect, newest::dereg_mr, newest::devices, newest::finalize,
    newest::iflush, newest::init, newest::irecv, newest::isend, newest::listen, newest::reg_mr, newest::reg_mr_dma_buf,
    newest::set_net_attr, newest::test;

ncclResult_t init(ncclDebugLogger_t logger) {
  return logged_init("init", logger, [&]() -> Status {
    if (process_context != nullptr) loaded_again();
    process_context = GYRE_TRY(context_of(NCCL_NET_TRAFFIC_CLASS_UNDEF));
    return {};
  });
}
ncclResult_t init(ncclDebugLogger_t logger, ncclProfilerCallback_t) { return init(logger); }

ncclResult_t listen(int dev, void* handle, void** listenComm) { return newest::listen(process_context, dev, handle, listenComm); }

ncclResult_t connect(int dev, void* handle, void** sendComm) { return newest::connect(process_context, dev, handle, sendComm, nullptr); }
ncclResult_t connect(int dev, void* handle, void** sendComm, ncclNetDeviceHandle_v7_t**) { return connect(dev, handle, sendComm); }
ncclResult_t connect(int dev, ncclNetCommConfig_v10_t* config, void* handle, void** sendComm, ncclNetDeviceHandle_v10_t**) {
  if (config == nullptr || config->trafficClass < 0) return connect(dev, handle, sendComm);
  Context* context = nullptr;
  const ncclResult_t result = guard("connect", [&]() -> Status {
    if (sendComm != nullptr) *sendComm = nullptr;
    context = GYRE_TRY(context_of(config->trafficClass));
    return {};
  });
  return result == ncclSuccess ? newest::connect(context, dev, handle, sendComm, nullptr) : result;
}

ncclResult_t accept(void* listenComm, void** recvComm) { return newest::accept(listenComm, recvComm, nullptr); }

/// For the sizes that were int: the slot refuses it, with nothing left in *out.
[[gnu::cold]] ncclResult_t refuse_size(const char* slot, int size, void** out) {
  if (out != nullptr) *out = nullptr;
  return guard(slot, [&]() -> Status { return negative_size(size); });
}

ncclResult_t reg_mr(void* comm, void* data, int size, int type, void** mhandle) {
  if (size < 0) return refuse_size("regMr", size, mhandle);
  return newest::reg_mr(comm, data, static_cast<size_t>(size), type, mhandle);
}

ncclResult_t isend(void* sendComm, void* data, size_t size, int tag, void* mhandle, void** request) {
  return newest::isend(sendComm, data, size, tag, mhandle, nullptr, request);
}
ncclResult_t isend(void* sendComm, void* data, int size, int tag, void* mhandle, void** request) {
  if (size < 0) return refuse_size("isend", size, request);
  return newest::isend(sendComm, data, static_cast<size_t>(size), tag, mhandle, nullptr, request);
}

ncclResult_t irecv(void* recvComm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** request) {
  return newest::irecv(recvComm, n, data, sizes, tags, mhandles, nullptr, request);
}
ncclResult_t irecv(void* recvComm, int n, void** data, int* sizes, int* tags, void** mhandles, void** request) {
  size_t wide[max_grouped] = {};
  const int known = sizes == nullptr ? 0 : std::min(n, max_grouped);  // a wrong n is refused below
  for (int i = 0; i < known; ++i) {
    if (sizes[i] < 0) return refuse_size("irecv", sizes[i], request);
    wide[i] = static_cast<size_t>(sizes[i]);
  }
  return newest::irecv(recvComm, n, data, sizes == nullptr ? nullptr : wide, tags, mhandles, nullptr, request);
}

/// A slot's name here stands for all its forms, of which the table's type picks one.
template <class Table>
constexpr Table table_of() {
  Table table{};
  table.name = net_name;
  table.init = init;
  table.devices = devices;
  table.getProperties = get_properties;
  table.listen = listen;
  table.connect = connect;
  table.accept = accept;
  table.regMr = reg_mr;
  if constexpr (requires { table.regMrDmaBuf; }) table.regMrDmaBuf = reg_mr_dma_buf;
  table.deregMr = dereg_mr;
  table.isend = isend;
  table.irecv = irecv;
  table.iflush = iflush;
  table.test = test;
  table.closeSend = close_comm;
  table.closeRecv = close_comm;
  table.closeListen = close_listen;
  if constexpr (requires { table.makeVDevice; }) table.makeVDevice = make_vdevice;
  if constexpr (requires { table.finalize; }) table.finalize = finalize;
  if constexpr (requires { table.setNetAttr; }) table.setNetAttr = set_net_attr;
  return table;
}

}  // namespace
}  // namespace gyre::plugin::older

using gyre::plugin::older::table_of;

extern "C" {
constinit const ncclNet_v5_t ncclNetPlugin_v5 = table_of<ncclNet_v5_t>();
constinit const ncclNet_v6_t ncclNetPlugin_v6 = table_of<ncclNet_v6_t>();
constinit const ncclNet_v7_t ncclNetPlugin_v7 = table_of<ncclNet_v7_t>();
constinit const ncclNet_v8_t ncclNetPlugin_v8 = table_of<ncclNet_v8_t>();
constinit const ncclNet_v9_t ncclNetPlugin_v9 = table_of<ncclNet_v9_t>();
constinit const ncclNet_v10_t ncclNetPlugin_v10 = table_of<ncclNet_v10_t>();
constinit const ncclNet_v11_t ncclNetPlugin_v11 = table_of<ncclNet_v11_t>();
}
