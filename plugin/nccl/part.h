// What a group holds of one communicator, and the memory and streams that it needs. It must not know in which order parts are run.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "plugin/nccl/group.h"

namespace gyre::plugin::nccl {

/// Memory of the host in place of a GPU's, of a send or a receive.
struct Bounce {
  const Operation* operation;
  size_t transfer;  // of its part
  std::unique_ptr<std::byte[]> memory{};

  size_t bytes() const { return operation->transfer.count * size_of(operation->transfer.type); }
  bool sends() const { return operation->transfer.kind == engine::Transfer::Kind::send; }
  Status fill() const { return copy(memory.get(), operation->transfer.data); }
  Status empty() const { return copy(operation->transfer.data, memory.get()); }

 private:
  Status copy(void* to, const void* from) const;
};

struct Part {
  Shared comm;
  cuda::Context context;  // of its streams
  const char* name;       // of the first operation

  std::vector<const Operation*> on_gpu{}, on_host{};  // collectives
  std::vector<engine::Transfer> transfers{};
  bool carried = false;                 // all transfers are by the GPU's streams; else none, and all by the host's engine
  std::vector<Bounce> bounces{};        // of these
  std::vector<cudaStream_t> streams{};  // of what it has on GPU memory, each once; without those that are captured
  std::optional<engine::Request> last{};
  Status status{};

  bool is_one() const { return on_gpu.size() + on_host.size() + (transfers.empty() ? 0 : 1) == 1; }
  bool needs_engine() const { return !on_host.empty() || (!transfers.empty() && !carried); }

  /// Of what was not refused: before that a message may be of any size. What there is no room for in streams is not carried.
  void make_room();
  Status fill_bounces() const;
  Status empty_bounces() const;
  /// What each of its streams is given from now on comes after what any of them has been given. By NCCL's guide a group is in the order of
  /// each of its streams.
  Status join_streams() const;
};

std::vector<Part> parts_of(const std::vector<Operation>&);

}  // namespace gyre::plugin::nccl
