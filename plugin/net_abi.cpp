#include "plugin/net_abi.h"

#include <fmt/format.h>

#include <cstring>

#include "plugin/guard.h"
#include "plugin/net.h"
#include "plugin/net_abi_arguments.h"
#include "plugin/net_abi_properties.h"
#include "plugin/net_log.h"

namespace gyre::plugin {
namespace {

Status register_any(void* comm, void* data, size_t size, int type, void** mhandle, const transport::DmaBuf* dmabuf = nullptr) {
  if (mhandle == nullptr) return missing("mhandle");
  *mhandle = nullptr;
  if (comm == nullptr) return missing("comm");
  if (data == nullptr) return missing("data");
  if (type != NCCL_PTR_HOST && type != NCCL_PTR_CUDA)
    return Error{Code::invalid_argument,
                 fmt::format("type is {}, must be {} (host memory) or {} (CUDA's)", type, int{NCCL_PTR_HOST}, int{NCCL_PTR_CUDA})};
  const MemoryKind kind = type == NCCL_PTR_CUDA ? MemoryKind::cuda : MemoryKind::host;
  *mhandle = GYRE_TRY(register_memory(static_cast<Comm*>(comm), data, size, kind, kind == MemoryKind::cuda ? dmabuf : nullptr));
  return {};
}

}  // namespace

namespace newest {

ncclResult_t init(void** ctx, uint64_t commId, ncclNetCommConfig_v12_t* config, ncclDebugLogger_t logger, ncclProfilerCallback_t) {
  return logged_init("init", logger, [&]() -> Status {
    if (ctx == nullptr) return missing("ctx");
    *ctx = nullptr;
    *ctx = GYRE_TRY(open(commId, config == nullptr ? NCCL_NET_TRAFFIC_CLASS_UNDEF : config->trafficClass));
    return {};
  });
}

ncclResult_t devices(int* ndev) {
  return guard("devices", [&]() -> Status {
    if (ndev == nullptr) return missing("ndev");
    *ndev = GYRE_TRY(plugin::devices());
    return {};
  });
}

ncclResult_t listen(void* ctx, int dev, void* handle, void** listenComm) {
  return guard("listen", [&]() -> Status {
    if (listenComm == nullptr) return missing("listenComm");
    *listenComm = nullptr;
    if (handle == nullptr) return missing("handle");
    std::memset(handle, 0, handle_bytes);  // all of it is carried to the sender
    *listenComm = GYRE_TRY(plugin::listen(static_cast<Context*>(ctx), dev, Handle(static_cast<std::byte*>(handle), handle_bytes)));
    return {};
  });
}

ncclResult_t connect(void* ctx, int dev, void* handle, void** sendComm, ncclNetDeviceHandle_v12_t**) {
  return guard("connect", [&]() -> Status {
    if (sendComm == nullptr) return missing("sendComm");
    *sendComm = nullptr;  // after an error NCCL would close what stands there
    if (handle == nullptr) return missing("handle");
    *sendComm = GYRE_TRY(plugin::connect(static_cast<Context*>(ctx), dev, Handle(static_cast<std::byte*>(handle), handle_bytes)));
    return {};
  });
}

ncclResult_t accept(void* listenComm, void** recvComm, ncclNetDeviceHandle_v12_t**) {
  return guard("accept", [&]() -> Status {
    if (recvComm == nullptr) return missing("recvComm");
    *recvComm = nullptr;
    if (listenComm == nullptr) return missing("listenComm");
    *recvComm = GYRE_TRY(plugin::accept(static_cast<ListenComm*>(listenComm)));
    return {};
  });
}

ncclResult_t reg_mr(void* comm, void* data, size_t size, int type, void** mhandle) {
  return guard("regMr", [&] { return register_any(comm, data, size, type, mhandle); });
}

ncclResult_t reg_mr_dma_buf(void* comm, void* data, size_t size, int type, uint64_t offset, int fd, void** mhandle) {
  // NCCL closes the descriptor when this returns, and verbs need it no longer; UCX asks CUDA for one itself.
  const transport::DmaBuf dmabuf{fd, offset};
  return guard("regMrDmaBuf", [&] { return register_any(comm, data, size, type, mhandle, &dmabuf); });
}

ncclResult_t dereg_mr(void* comm, void* mhandle) {
  return guard_cleanup("deregMr", [&]() -> Status {
    if (mhandle == nullptr) return {};
    if (comm == nullptr) return missing("comm");
    return deregister(static_cast<Comm*>(comm), static_cast<Memory*>(mhandle));
  });
}

// NCCL closes what it could not connect, too: null.
ncclResult_t close_comm(void* comm) {
  return guard_cleanup("close", [&]() -> Status {
    close(static_cast<Comm*>(comm));
    return {};
  });
}
ncclResult_t close_listen(void* listenComm) {
  return guard_cleanup("closeListen", [&]() -> Status {
    close(static_cast<ListenComm*>(listenComm));
    return {};
  });
}

ncclResult_t finalize(void* ctx) {
  if (ctx == nullptr) return ncclSuccess;
  const ncclResult_t result = guard("finalize", [&] { return plugin::finalize(static_cast<Context*>(ctx)); });
  end_log();
  return result;
}

// A hint of what comes next, good or not: nothing here depends on it.
ncclResult_t set_net_attr(void*, ncclNetAttr_v12_t*) { return ncclSuccess; }

}  // namespace newest
}  // namespace gyre::plugin

using namespace gyre::plugin;

// NCCL reads a table as soon as it finds the symbol, so nothing is left to a constructor. It would call irecvConsumed after every receive,
// and needs neither it nor getDeviceMr of a plugin without code on the GPU.
extern "C" constinit const ncclNet_v12_t ncclNetPlugin_v12{
    .name = net_name,
    .init = newest::init,
    .devices = newest::devices,
    .getProperties = get_properties<ncclNetProperties_v12_t>,
    .listen = newest::listen,
    .connect = newest::connect,
    .accept = newest::accept,
    .regMr = newest::reg_mr,
    .regMrDmaBuf = newest::reg_mr_dma_buf,
    .deregMr = newest::dereg_mr,
    .isend = newest::isend,
    .irecv = newest::irecv,
    .iflush = newest::iflush,
    .test = newest::test,
    .closeSend = newest::close_comm,
    .closeRecv = newest::close_comm,
    .closeListen = newest::close_listen,
    .getDeviceMr = nullptr,
    .irecvConsumed = nullptr,
    .makeVDevice = make_vdevice<ncclNetVDeviceProps_v12_t>,
    .finalize = newest::finalize,
    .setNetAttr = newest::set_net_attr,
};
