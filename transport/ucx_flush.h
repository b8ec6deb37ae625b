// A NIC that writes into a GPU's memory tells of the end of a write before the GPU can see it. A read by the same NIC from that memory
// goes behind the writes and is answered when they are done. So for every such device this has a connection of the device to itself, and
// reads a few bytes. Private to the UCX backend.
#pragma once
#include <ucp/api/ucp.h>

#include <array>
#include <string>
#include <vector>

#include "transport/ucx_context.h"
#include "transport/ucx_requests.h"

namespace gyre::transport::ucx {

class Flushes {
 public:
  /// `transports`: by which a device reaches itself; not "self", which would have the processor read.
  static Result<std::unique_ptr<Flushes>> open(const std::vector<std::string>& devices, const std::string& transports = "ib");
  ~Flushes();
  Flushes(const Flushes&) = delete;
  Flushes& operator=(const Flushes&) = delete;

  /// Memory as every device knows it. From any thread.
  class Region;
  Result<std::unique_ptr<Region>> add(std::span<std::byte>, MemoryKind);
  /// Done when every device has read `data`, which lies in the region.
  Result<Request*> start(Region&, const std::byte* data);
  void release(Request*);
  void progress();

 private:
  struct Device {
    Context context;
    Unique<ucp_worker, ucp_worker_destroy> worker{};
    ucp_ep_h endpoint = nullptr;
    std::unique_ptr<Requests> requests = std::make_unique<Requests>(capacity);
  };
  // One flush: a read by each device.
  struct Flush : Request {
    std::vector<Request*> reads;
    bool in_use = false;
  };
  static constexpr size_t capacity = 512;

  explicit Flushes() : flushes_(capacity) {}
  Status open_device(const std::string& device, const std::string& transports);

  std::vector<Device> devices_;
  std::vector<Flush> flushes_;
  std::vector<Flush*> under_way_;
  std::array<std::byte, 8> target_{};  // what is read is of no interest
};

class Flushes::Region {
 public:
  struct Key {
    Mapped memory;
    ucp_rkey_h key = nullptr;  // unpacked by the first flush, in the worker's thread
  };
  Region() = default;
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() {
    for (const Key& key : keys)
      if (key.key) ucp_rkey_destroy(key.key);
  }
  std::vector<Key> keys;  // one for each device
  const std::byte* end = nullptr;
};

}  // namespace gyre::transport::ucx
