// RDMA devices inside this process, in the place of libibverbs (transport/verbs/api.h): reliable connections whose packets move when
// somebody polls. Tests cut ports, hold packets back, lose acknowledgements, make calls fail and queues run out, and count what was posted.
// What a queue pair has sent stays in the network when that queue pair is gone, as in a real one. For several threads; one at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/verbs/api.h"

namespace gyre::test {

struct FakeTraits {
  int ports = 1;
  uint8_t link_layer = IBV_LINK_LAYER_ETHERNET;
  uint32_t max_inline = 220;
  uint8_t width = 2, speed = 32;  // as codes: 4 lanes of EDR
  uint16_t lid = 7;               // of InfiniBand
  std::vector<uint16_t> pkeys{0xffff};
  int max_cqe = 1 << 22, max_qp_wr = 1 << 15;
  uint32_t max_message = 1U << 30;
  bool dmabuf = true;  // its driver takes it
};

struct FakeCounts {
  uint64_t sends = 0, signaled = 0, inlined = 0, receives = 0, completions = 0, bytes = 0, polls = 0, immediates = 0;
};

class FakeVerbs {
 public:
  /// Takes libibverbs' place until its end.
  FakeVerbs();
  FakeVerbs(const FakeVerbs&) = delete;
  FakeVerbs& operator=(const FakeVerbs&) = delete;
  ~FakeVerbs();

  void add_device(const std::string& name, FakeTraits traits = {});
  /// Nothing passes this port; what waits there fails after its retries. The device says so by an event.
  void cut(const std::string& device, uint8_t port = 1);
  /// The same without an event: something behind the port has failed.
  void cut_path(const std::string& device, uint8_t port = 1);
  void restore(const std::string& device, uint8_t port = 1);
  /// The device itself fails: an event, and every queue pair is in the error state.
  void kill(const std::string& device);
  /// An event, such as IBV_EVENT_LID_CHANGE; of a queue pair: `pair` is its number.
  void tell(const std::string& device, ibv_event_type, uint8_t port = 1);
  void tell_of_pair(const std::string& device, ibv_event_type, uint32_t pair);
  /// An entry of the port's table of addresses ("0000:0000:0000:0000:0000:ffff:0a07:0102", "RoCE v2"), and the event that says so.
  void set_gid(const std::string& device, int index, const std::string& gid, const std::string& type, uint8_t port = 1);
  /// Acknowledgements to this port are lost until restore(): what it sends arrives, and fails at its sender.
  void lose_acknowledgements(const std::string& device, uint8_t port = 1);
  /// Packets stay in the network, whatever becomes of their sender.
  void hold(bool held);
  /// What is in the network stays, and its sender hears nothing of it, as of a device that has lost it.
  void swallow();
  /// Packets of different queue pairs pass each other; 0: first in, first out.
  void shuffle(uint64_t seed);
  /// The `nth` next call of this function ("reg_mr", "post_send") fails with this errno.
  void fail(const std::string& function, int error, int nth = 1);

  /// Completions of a queue pair stay when it is destroyed, as on some devices.
  void keep_completions();

  /// Where its devices show their addresses as a real system does.
  const std::string& sysfs() const { return sysfs_; }
  FakeCounts counts() const;
  /// That this device has sent.
  uint64_t bytes_of(const std::string& device) const;
  /// A GPU's memory, which the device reaches only by DMA-BUF, or by its address where `peer_memory`.
  void add_gpu(std::span<const std::byte> memory, bool peer_memory);
  struct Region {
    uint64_t address = 0, bytes = 0, offset = 0;
    int fd = -1;  // of a DMA-BUF
    int access = 0;
  };
  /// What is registered now, in its order.
  std::vector<Region> regions() const;
  /// Handles that are not closed.
  int open_handles() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
  std::string sysfs_;
};

}  // namespace gyre::test
