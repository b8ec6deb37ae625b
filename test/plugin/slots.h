// Any version of NCCL's net table, called as the newest one is: what an older one lacks is left out. So that one test holds for all.
#pragma once
#include <tuple>
#include <type_traits>

#include "plugin/net_abi.h"

namespace gyre::plugin {

using Tables =
    std::tuple<ncclNet_v5_t, ncclNet_v6_t, ncclNet_v7_t, ncclNet_v8_t, ncclNet_v9_t, ncclNet_v10_t, ncclNet_v11_t, ncclNet_v12_t>;

template <class Table>
struct Slots {
  static const Table& table() {
    return std::get<const Table&>(std::tie(ncclNetPlugin_v5, ncclNetPlugin_v6, ncclNetPlugin_v7, ncclNetPlugin_v8, ncclNetPlugin_v9,
                                           ncclNetPlugin_v10, ncclNetPlugin_v11, ncclNetPlugin_v12));
  }

  static constexpr bool has_contexts = requires(Table t) { t.finalize; };
  static constexpr bool has_dma_buf = requires(Table t) { t.regMrDmaBuf; };
  static constexpr bool has_virtual_devices = requires(Table t) { t.makeVDevice; };
  static constexpr bool has_device_comms = requires(Table t) { t.getDeviceMr; };
  static constexpr bool has_traffic_class = std::is_same_v<decltype(Table::init), ncclNetInit_v10_fn>;
  static constexpr bool has_size_t_registration = std::is_same_v<decltype(Table::regMr), ncclNetRegMr_v8_fn>;
  static constexpr bool has_profiles = std::is_same_v<decltype(Table::isend), ncclNetIsend_v10_fn>;
  static constexpr bool has_size_t_messages = has_profiles || std::is_same_v<decltype(Table::isend), ncclNetIsend_v9_fn>;

  using RegisteredSize = std::conditional_t<has_size_t_registration, size_t, int>;
  using Size = std::conditional_t<has_size_t_messages, size_t, int>;

  static ncclResult_t init(void** ctx, ncclDebugLogger_t logger = nullptr, uint64_t communicator = 7, int traffic_class = -1) {
    ncclNetCommConfig_v12_t config{traffic_class};
    if constexpr (has_contexts) return table().init(ctx, communicator, &config, logger, nullptr);
    if constexpr (has_traffic_class) return table().init(logger, nullptr);
    if constexpr (!has_contexts && !has_traffic_class) return table().init(logger);
  }
  static ncclResult_t listen(void* ctx, int dev, void* handle, void** comm) {
    if constexpr (has_contexts) return table().listen(ctx, dev, handle, comm);
    if constexpr (!has_contexts) return table().listen(dev, handle, comm);
  }
  static ncclResult_t connect(void* ctx, int dev, void* handle, void** comm, ncclNetDeviceHandle_v7_t** device_comm = nullptr) {
    if constexpr (has_contexts) return table().connect(ctx, dev, handle, comm, device_comm);
    if constexpr (has_traffic_class) return table().connect(dev, nullptr, handle, comm, device_comm);
    if constexpr (has_device_comms && !has_contexts && !has_traffic_class) return table().connect(dev, handle, comm, device_comm);
    if constexpr (!has_device_comms) return table().connect(dev, handle, comm);
  }
  static ncclResult_t accept(void* listener, void** comm, ncclNetDeviceHandle_v7_t** device_comm = nullptr) {
    if constexpr (has_device_comms) return table().accept(listener, comm, device_comm);
    if constexpr (!has_device_comms) return table().accept(listener, comm);
  }
  static ncclResult_t isend(void* comm, void* data, Size size, int tag, void* memory, void** request) {
    if constexpr (has_profiles) return table().isend(comm, data, size, tag, memory, nullptr, request);
    if constexpr (!has_profiles) return table().isend(comm, data, size, tag, memory, request);
  }
  static ncclResult_t irecv(void* comm, int n, void** data, Size* sizes, int* tags, void** memory, void** request) {
    if constexpr (has_profiles) return table().irecv(comm, n, data, sizes, tags, memory, nullptr, request);
    if constexpr (!has_profiles) return table().irecv(comm, n, data, sizes, tags, memory, request);
  }
};

}  // namespace gyre::plugin
