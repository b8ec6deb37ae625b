// Memory registered on each rail of a worker: of the host, or of a GPU. GPU memory is registered by its DMA-BUF where there is one and the
// driver of the NIC takes it, else by its address, which needs the kernel module that tells NICs of GPU memory (nvidia_peermem).
// Not run on hardware: what concerns GPU memory.
#pragma once
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "transport/transport.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/wire.h"

namespace gyre::transport::verbs {

/// Of the writes into it on PCI: relaxed ones are faster, and before their completion may be seen in any order, as what is polled must not
/// be.
enum class Ordering : uint8_t { relaxed, strict };

/// What is to be registered.
struct Range {
  std::span<std::byte> bytes;
  MemoryKind kind = MemoryKind::host;
  std::optional<DmaBuf> dmabuf{};
  Ordering ordering = Ordering::relaxed;  ///< relaxed only where NCCL_IB_PCI_RELAXED_ORDERING has it so
};

/// By one rail. The error says what keeps it from that.
Result<MemoryRegion> register_range(const Rail&, const Range&);

/// Whether GPU memory can be registered, and how: by an open device, by the modules of the system (verbs.h has both).
bool knows_dmabuf(ibv_pd*);
bool has_peer_memory(const std::filesystem::path& sysfs);

class Registrations;

/// A registration as its user holds it. Several may share the devices' registrations (registrations.h).
class Registered final : public Memory {
 public:
  using Regions = std::array<MemoryRegion, max_rails>;  // one for each rail

  /// Of the host, uncounted, in strict order: what the processor polls.
  static Result<std::unique_ptr<Registered>> add(std::span<Rail* const> rails, std::span<std::byte>);
  // shared_ptr: users of overlapping ranges give them back in any order.
  Registered(std::shared_ptr<const Regions>, const Range&, Registrations* kept_by = nullptr);
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  ~Registered() override;

  uint32_t local_key(size_t rail) const { return local_keys_[rail]; }
  uint32_t remote_key(size_t rail) const { return remote_keys_[rail]; }
  std::span<std::byte> bytes() const { return bytes_; }
  MemoryKind kind() const { return kind_; }
  const std::shared_ptr<const Regions>& regions() const { return regions_; }

 private:
  std::array<uint32_t, max_rails> local_keys_{}, remote_keys_{};
  std::shared_ptr<const Regions> regions_;
  const std::span<std::byte> bytes_;
  const MemoryKind kind_;
  Registrations* const kept_by_;
};

}  // namespace gyre::transport::verbs
