// A NetPlugin over one version of NCCL's table. The type of a slot says its form, so each call is written once for all versions.
#pragma once
#include <algorithm>
#include <climits>
#include <string>
#include <type_traits>

#include "perf/net_plugin.h"

namespace gyre::perf {

/// NCCL's own stand-in where no profiler is loaded.
inline ncclResult_t no_profiler(void**, int, void*, int64_t, void*) { return ncclSuccess; }

/// Version 12's properties from an older version's, with what NCCL assumes of it.
template <class Properties>
ncclNetProperties_v12_t newest_properties(const Properties& p, int device) {
  ncclNetProperties_v12_t all{};
  all.name = p.name, all.pciPath = p.pciPath, all.guid = p.guid, all.ptrSupport = p.ptrSupport;
  all.speed = p.speed, all.port = p.port, all.latency = p.latency, all.maxComms = p.maxComms, all.maxRecvs = p.maxRecvs;
  all.netDeviceType = NCCL_NET_DEVICE_HOST;
  all.vProps = {1, {device}};
  all.maxP2pBytes = NCCL_MAX_NET_SIZE, all.maxCollBytes = NCCL_MAX_NET_SIZE / 2;
  all.maxMultiRequestSize = 1;
  all.railId = all.planeId = NCCL_NET_ID_UNDEF;
  if constexpr (requires { p.netDeviceType; }) all.netDeviceType = p.netDeviceType, all.netDeviceVersion = p.netDeviceVersion;
  if constexpr (requires { p.regIsGlobal; }) all.regIsGlobal = p.regIsGlobal;
  if constexpr (requires { p.forceFlush; }) all.forceFlush = p.forceFlush;
  if constexpr (requires { p.vProps; }) {
    all.vProps.ndevs = p.vProps.ndevs;
    std::copy(std::begin(p.vProps.devs), std::end(p.vProps.devs), all.vProps.devs);
    all.maxP2pBytes = p.maxP2pBytes, all.maxCollBytes = p.maxCollBytes;
  }
  if constexpr (requires { p.maxMultiRequestSize; }) all.maxMultiRequestSize = p.maxMultiRequestSize;
  if constexpr (requires { p.railId; }) all.railId = p.railId, all.planeId = p.planeId;
  return all;
}

template <class Table>
class NetPluginTable final : public NetPlugin {
  template <class Slot, class Form>
  static constexpr bool is = std::is_same_v<std::remove_cvref_t<Slot>, Form>;
  static constexpr bool has_context = requires(Table t) { t.finalize; };

  const Table& t_;
  int traffic_class_ = NCCL_NET_TRAFFIC_CLASS_UNDEF;  // table 10 takes it with every connect

 public:
  NetPluginTable(std::shared_ptr<void> library, int version, const Table& table)
      : NetPlugin(std::move(library), version, &table, table.name), t_(table) {}

  Result<void*> init(const NetInit& given) override {
    traffic_class_ = given.traffic_class;
    const ncclProfilerCallback_t profiler = given.profiler != nullptr ? given.profiler : no_profiler;
    void* context = nullptr;
    if constexpr (has_context) {
      ncclNetCommConfig_v12_t config{given.traffic_class};
      return result("init", t_.init(&context, given.communicator, &config, given.logger, profiler), context);
    } else if constexpr (requires { t_.init(given.logger, profiler); }) {
      return result("init", t_.init(given.logger, profiler), context);
    } else {
      return result("init", t_.init(given.logger), context);
    }
  }
  Status finalize(void* context) override {
    if constexpr (has_context) return status("finalize", t_.finalize(context));
    return {};
  }
  Result<int> devices() override {
    int count = 0;
    return result("devices", t_.devices(&count), count);
  }
  Result<ncclNetProperties_v12_t> properties(int device) override {
    const auto get = [&]<class Properties>(ncclResult_t (*slot)(int, Properties*)) -> Result<ncclNetProperties_v12_t> {
      Properties p;  // not zeroed: NCCL's is not either
      GYRE_TRY(status("getProperties", slot(device, &p)));
      return newest_properties(p, device);
    };
    return get(t_.getProperties);
  }
  Result<int> make_virtual_device(std::span<const int> members) override {
    if constexpr (requires { t_.makeVDevice; }) {
      const auto make = [&]<class Members>(ncclResult_t (*slot)(int*, Members*)) -> Result<int> {
        Members given{};
        if (slot == nullptr || members.size() > std::size(given.devs)) return error("makeVDevice", ncclInvalidUsage);
        given.ndevs = static_cast<int>(members.size());
        std::copy(members.begin(), members.end(), given.devs);
        int device = -1;
        return result("makeVDevice", slot(&device, &given), device);
      };
      return make(t_.makeVDevice);
    } else {
      return error("makeVDevice", ncclInvalidUsage);
    }
  }
  Status set_attributes(void* context, ncclNetAttr_v12_t attributes) override {
    if constexpr (has_context) {
      if (t_.setNetAttr != nullptr) return status("setNetAttr", t_.setNetAttr(context, &attributes));
    }
    return {};
  }

  Result<void*> listen(void* context, int device, NetHandle& handle) override {
    void* comm = nullptr;
    if constexpr (has_context)
      return result("listen", t_.listen(context, device, handle.data(), &comm), comm);
    else
      return result("listen", t_.listen(device, handle.data(), &comm), comm);
  }
  Result<void*> connect(void* context, int device, NetHandle& handle) override {
    using Slot = decltype(t_.connect);
    void* comm = nullptr;
    ncclNetDeviceHandle_v12_t* offload = nullptr;
    ncclResult_t code = ncclSuccess;
    if constexpr (has_context) {
      code = t_.connect(context, device, handle.data(), &comm, &offload);
    } else if constexpr (is<Slot, ncclNetConnect_v10_fn>) {
      ncclNetCommConfig_v10_t config{traffic_class_};
      code = t_.connect(device, &config, handle.data(), &comm, &offload);
    } else if constexpr (is<Slot, ncclNetConnect_v7_fn>) {
      code = t_.connect(device, handle.data(), &comm, &offload);
    } else {
      code = t_.connect(device, handle.data(), &comm);
    }
    return result("connect", code, comm);
  }
  Result<void*> accept(void* listen_comm) override {
    void* comm = nullptr;
    ncclNetDeviceHandle_v12_t* offload = nullptr;
    if constexpr (is<decltype(t_.accept), ncclNetAccept_v7_fn>)
      return result("accept", t_.accept(listen_comm, &comm, &offload), comm);
    else
      return result("accept", t_.accept(listen_comm, &comm), comm);
  }

  Result<void*> register_memory(void* comm, void* data, size_t bytes, int type) override {
    void* mhandle = nullptr;
    if constexpr (is<decltype(t_.regMr), ncclNetRegMr_v8_fn>)
      return result("regMr", t_.regMr(comm, data, bytes, type, &mhandle), mhandle);
    else {
      if (bytes > INT_MAX) return error("regMr", ncclInternalError);
      return result("regMr", t_.regMr(comm, data, static_cast<int>(bytes), type, &mhandle), mhandle);
    }
  }
  Result<void*> register_dmabuf(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd) override {
    void* mhandle = nullptr;
    if constexpr (requires { t_.regMrDmaBuf; }) {
      if (t_.regMrDmaBuf != nullptr) {
        return result("regMrDmaBuf", t_.regMrDmaBuf(comm, data, bytes, type, offset, fd, &mhandle), mhandle);
      }
    }
    return error("regMrDmaBuf", ncclInvalidUsage);
  }
  Status deregister(void* comm, void* mhandle) override { return status("deregMr", t_.deregMr(comm, mhandle)); }
  Status close_send(void* comm) override { return status("closeSend", t_.closeSend(comm)); }
  Status close_recv(void* comm) override { return status("closeRecv", t_.closeRecv(comm)); }
  Status close_listen(void* comm) override { return status("closeListen", t_.closeListen(comm)); }

  ncclResult_t isend(void* comm, void* data, size_t bytes, int tag, void* mhandle, void** request) override {
    using Slot = decltype(t_.isend);
    if constexpr (is<Slot, ncclNetIsend_v10_fn>)
      return t_.isend(comm, data, bytes, tag, mhandle, nullptr, request);
    else if constexpr (is<Slot, ncclNetIsend_v9_fn>)
      return t_.isend(comm, data, bytes, tag, mhandle, request);
    else {
      if (bytes > NCCL_MAX_NET_SIZE) return ncclInternalError;
      return t_.isend(comm, data, static_cast<int>(bytes), tag, mhandle, request);
    }
  }
  ncclResult_t irecv(void* comm, int n, void** data, size_t* bytes, int* tags, void** mhandles, void** request) override {
    using Slot = decltype(t_.irecv);
    if constexpr (is<Slot, ncclNetIrecv_v10_fn>) {
      std::array<void*, NCCL_NET_MAX_REQUESTS> no_profiles{};
      if (n > NCCL_NET_MAX_REQUESTS) return ncclInternalError;
      return t_.irecv(comm, n, data, bytes, tags, mhandles, no_profiles.data(), request);
    } else if constexpr (is<Slot, ncclNetIrecv_v9_fn>) {
      return t_.irecv(comm, n, data, bytes, tags, mhandles, request);
    } else {
      std::array<int, NCCL_NET_MAX_REQUESTS> sizes{};
      if (n > NCCL_NET_MAX_REQUESTS) return ncclInternalError;
      for (int i = 0; i < n; ++i) {
        if (bytes[i] > NCCL_MAX_NET_SIZE) return ncclInternalError;
        sizes[static_cast<size_t>(i)] = static_cast<int>(bytes[i]);
      }
      *request = nullptr;  // these tables know no hint
      return t_.irecv(comm, n, data, sizes.data(), tags, mhandles, request);
    }
  }
  ncclResult_t iflush(void* comm, int n, void** data, int* bytes, void** mhandles, void** request) override {
    return t_.iflush(comm, n, data, bytes, mhandles, request);
  }
  ncclResult_t test(void* request, int* done, int* sizes) override { return t_.test(request, done, sizes); }
  ncclResult_t consumed(void* comm, int n, void* request) override {
    if constexpr (requires { t_.irecvConsumed; }) {
      if (t_.irecvConsumed != nullptr) return t_.irecvConsumed(comm, n, request);
    }
    return ncclSuccess;
  }

 private:
  Status status(const char* call, ncclResult_t code) const {
    if (code == ncclSuccess) return {};
    return error(call, code);
  }
  template <class T>
  Result<T> result(const char* call, ncclResult_t code, const T& value) const {
    GYRE_TRY(status(call, code));
    return value;
  }
};

}  // namespace gyre::perf
