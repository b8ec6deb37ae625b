// A device's properties, and fused devices, as each version of NCCL's table wants them. NCCL hands over uninitialised memory and keeps
// pointers to the texts, so every field is filled, and texts stay for the plugin's life.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "plugin/abi/net_properties.h"
#include "plugin/guard.h"
#include "plugin/net.h"
#include "plugin/net_abi_arguments.h"

namespace gyre::plugin {

/// A copy of the text that is never freed; equal texts share one. Null for an empty one.
char* kept_text(const std::string&);

template <class VirtualDevice>
Status fill_members(VirtualDevice& to, int device, std::span<const int> members) {
  if (members.size() > std::size(to.devs))
    return Error{Code::invalid_usage, fmt::format("device {} is fused of {} devices, and this version of NCCL knows of {} at most", device,
                                                  members.size(), std::size(to.devs))};
  to.ndevs = members.empty() ? 1 : static_cast<int>(members.size());
  to.devs[0] = device;
  std::copy(members.begin(), members.end(), to.devs);
  return {};
}

template <class Props>
Status fill_properties(Props& to, int device, const Properties& from) {
  to = Props{};
  to.name = kept_text(from.device.name);
  to.pciPath = kept_text(from.device.pci_path);
  to.guid = from.device.guid;
  to.ptrSupport = NCCL_PTR_HOST | (from.cuda ? NCCL_PTR_CUDA : 0) | (from.dmabuf ? NCCL_PTR_DMABUF : 0);
  to.speed = from.device.mbit_per_s;
  to.port = from.device.port;
  to.latency = from.device.latency_us;
  to.maxComms = 65536;  // early releases take one off per channel, and pass over a device that has none left
  to.maxRecvs = max_grouped;
  if constexpr (requires { to.regIsGlobal; }) to.regIsGlobal = 0;
  if constexpr (requires { to.forceFlush; }) to.forceFlush = 0;
  if constexpr (requires { to.netDeviceType; }) {
    to.netDeviceType = NCCL_NET_DEVICE_HOST;
    to.netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;
  }
  if constexpr (requires { to.maxP2pBytes; }) to.maxP2pBytes = to.maxCollBytes = NCCL_MAX_NET_SIZE_BYTES;
  if constexpr (requires { to.maxMultiRequestSize; }) to.maxMultiRequestSize = 1;
  if constexpr (requires { to.railId; }) {
    to.railId = static_cast<int16_t>(from.device.rail);
    to.planeId = static_cast<int16_t>(from.device.plane);
  }
  if constexpr (requires { to.vProps; }) return fill_members(to.vProps, device, from.members);
  return {};
}

/// The slot getProperties of every version.
template <class Props>
ncclResult_t get_properties(int device, Props* to) {
  return guard("getProperties", [&]() -> Status {
    if (to == nullptr) return missing("props");
    return fill_properties(*to, device, GYRE_TRY(properties(device)));
  });
}

/// The slot makeVDevice of every version.
template <class VirtualDevice>
ncclResult_t make_vdevice(int* device, VirtualDevice* of) {
  return guard("makeVDevice", [&]() -> Status {
    if (device == nullptr) return missing("d");
    if (of == nullptr) return missing("props");
    if (of->ndevs < 1 || static_cast<size_t>(of->ndevs) > std::size(of->devs))
      return Error{Code::invalid_argument, fmt::format("ndevs is {}, must be from 1 to {}", of->ndevs, std::size(of->devs))};
    *device = GYRE_TRY(make_virtual_device({of->devs, static_cast<size_t>(of->ndevs)}));
    return {};
  });
}

}  // namespace gyre::plugin
