#include "transport/verbs/registered.h"

#include <fmt/format.h>

#include <cerrno>

#include "base/text.h"
#include "transport/verbs.h"
#include "transport/verbs/checks.h"
#include "transport/verbs/registrations.h"

namespace gyre::transport::verbs {
namespace {

constexpr uint64_t page = 4096;  // of GPUs' DMA-BUFs, at least

int access(const Rail& rail, const Range& range) {
  constexpr int needed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  const bool relaxed = range.ordering == Ordering::relaxed && rail.options().relaxed_ordering && api().reg_mr_iova2;
  return relaxed ? needed | IBV_ACCESS_RELAXED_ORDERING : needed;
}

MemoryRegion by_address(const Rail& rail, const Range& range) {
  const auto [data, bytes] = std::pair(range.bytes.data(), range.bytes.size());
  const int wanted = access(rail, range);
  // Only the newer call takes what devices need not know.
  if ((wanted & IBV_ACCESS_RELAXED_ORDERING) != 0)
    return MemoryRegion(api().reg_mr_iova2(rail.domain(), data, bytes, reinterpret_cast<uint64_t>(data), static_cast<unsigned>(wanted)));
  return MemoryRegion(api().reg_mr(rail.domain(), data, bytes, wanted));
}

/// Callers give the offset of the memory or that of the page in which it begins: the one that is right has the same place in its page.
MemoryRegion by_dmabuf(const Rail& rail, const Range& range) {
  const auto address = reinterpret_cast<uint64_t>(range.bytes.data());
  const uint64_t before = (address ^ range.dmabuf->offset) % page == 0 ? 0 : address % page;
  return MemoryRegion(api().reg_dmabuf_mr(rail.domain(), range.dmabuf->offset, range.bytes.size() + before, address - before,
                                          range.dmabuf->fd, access(rail, range)));
}

bool is_unknown(int error) { return error == EOPNOTSUPP || error == EPROTONOSUPPORT || error == ENOSYS; }

Error host_error(const Rail& rail, const Range& range, int error) {
  if (error == ENOMEM || error == EPERM)
    return {Code::system,
            fmt::format("{}: {} bytes can't be registered: {}", rail.name(), range.bytes.size(), why_not_locked(lock_limit()))};
  return {Code::system, fmt::format("{}: ibv_reg_mr of {} bytes at {}: {}", rail.name(), range.bytes.size(),
                                    static_cast<const void*>(range.bytes.data()), errno_text(error))};
}

}  // namespace

Result<MemoryRegion> register_range(const Rail& rail, const Range& range) {
  std::string dmabuf = range.dmabuf ? "this libibverbs is older than 34" : "none was given";
  if (range.dmabuf && api().reg_dmabuf_mr) {
    if (auto region = by_dmabuf(rail, range)) return region;
    if (!is_unknown(errno))
      return Error{Code::system, fmt::format("{}: ibv_reg_dmabuf_mr of {} bytes at offset {}: {}", rail.name(), range.bytes.size(),
                                             range.dmabuf->offset, errno_text(errno))};
    dmabuf = "the NIC's driver or the kernel does not take it";
  }
  if (auto region = by_address(rail, range)) return region;
  const int error = errno;
  if (range.kind == MemoryKind::host) return host_error(rail, range, error);
  return Error{Code::system,
               fmt::format("{}: {} bytes of GPU memory can't be registered: not as DMA-BUF ({}), and not by address ({}; is the "
                           "module loaded? modprobe nvidia-peermem)",
                           rail.name(), range.bytes.size(), dmabuf, errno_text(error))};
}

// No such descriptor: whoever looks at it knows the call.
bool knows_dmabuf(ibv_pd* domain) {
  if (!api().reg_dmabuf_mr) return false;
  const MemoryRegion none(api().reg_dmabuf_mr(domain, 0, page, 0, -1, IBV_ACCESS_LOCAL_WRITE));
  return none || !is_unknown(errno);
}

bool has_peer_memory(const std::filesystem::path& sysfs) {
  std::error_code error;
  for (const char* module : {"module/nvidia_peermem", "kernel/mm/memory_peers/nv_mem", "kernel/mm/memory_peers/nv_mem_nc"})
    if (std::filesystem::exists(sysfs / module / "version", error)) return true;
  return false;
}

VerbsGpuMemory gpu_memory(const std::string& device, const std::string& sysfs) {
  if (!load()) return {};
  const auto context = open_device(device, sysfs);
  if (!context) return {};
  const ProtectionDomain domain(api().alloc_pd(context->get()));
  return {domain && knows_dmabuf(domain.get()), has_peer_memory(sysfs)};
}

Result<std::unique_ptr<Registered>> Registered::add(std::span<Rail* const> rails, std::span<std::byte> bytes) {
  const Range range{bytes, MemoryKind::host, {}, Ordering::strict};
  auto regions = std::make_shared<Regions>();
  for (size_t i = 0; i < rails.size(); ++i) (*regions)[i] = GYRE_TRY(register_range(*rails[i], range));
  return std::make_unique<Registered>(std::move(regions), range);
}

Registered::Registered(std::shared_ptr<const Regions> regions, const Range& range, Registrations* kept_by)
    : regions_(std::move(regions)), bytes_(range.bytes), kind_(range.kind), kept_by_(kept_by) {
  for (size_t rail = 0; rail < max_rails; ++rail) {
    const auto& region = (*regions_)[rail];
    if (!region) break;
    local_keys_[rail] = region->lkey;
    remote_keys_[rail] = region->rkey;
  }
}

Registered::~Registered() {
  if (kept_by_) kept_by_->remove(*this);
}

}  // namespace gyre::transport::verbs

gyre::transport::VerbsGpuMemory gyre::transport::verbs_gpu_memory(const std::string& device, const std::string& sysfs) {
  return verbs::gpu_memory(device, sysfs);
}
