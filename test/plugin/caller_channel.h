// A connection as NCCL's proxies keep it: the comm, and a registered buffer of 8 slots for each protocol and each sender that shares the
// connection. Closed in NCCL's order: deregistered, memory given back, comm closed; memory that the plugin touches after that is not there.
#pragma once
#include <memory>
#include <span>

#include "perf/net_plugin.h"
#include "test/plugin/caller_job.h"

namespace gyre::test {

inline constexpr int steps_in_flight = 8;

/// Pages of its own, which are gone when it ends: a late write to them is a crash.
class Pages {
 public:
  explicit Pages(size_t bytes);
  ~Pages();
  Pages(Pages&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Pages& operator=(Pages&&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

class Channel {
 public:
  /// A comm that connect or accept gave.
  Channel(perf::NetPlugin& plugin, const Job& job, const Edge& edge, bool sends, void* comm)
      : plugin_(plugin), job_(job), edge_(edge), sends_(sends), comm_(comm) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() { close(); }

  Status make_buffers();
  /// Also a second time, as NCCL may. Errors are said, since NCCL gives up at them.
  void close();

  perf::NetPlugin& plugin() const { return plugin_; }
  const Job& job() const { return job_; }
  const Edge& edge() const { return edge_; }
  bool sends() const { return sends_; }
  void* comm() const { return comm_; }
  std::span<std::byte> slot(Protocol, int sender, int64_t step) const;
  void* memory(Protocol protocol) const { return memory_[static_cast<size_t>(protocol)]; }
  std::span<std::byte> buffer(Protocol protocol) const { return buffers_[static_cast<size_t>(protocol)].bytes(); }

 private:
  perf::NetPlugin& plugin_;
  const Job& job_;
  Edge edge_;
  bool sends_;
  bool closed_ = false;
  void* comm_;
  std::vector<Pages> buffers_;
  std::vector<void*> memory_;
};

}  // namespace gyre::test
