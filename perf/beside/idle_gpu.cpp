// A GPU that is never given anything, for a libgyre-nccl.so that has gyre beside NCCL's communicators.
#include "plugin/nccl/on_gpu.h"

namespace gyre::plugin::nccl {
namespace {

class IdleGpu final : public OnGpu {
 public:
  explicit IdleGpu(std::unique_ptr<engine::Communicator> ranks) : ranks_(std::move(ranks)) {}
  Status enqueue(const engine::Call&, const void*, void*, cudaStream_t) override { return Error{Code::internal, "an idle GPU"}; }
  Status why_not(const engine::Call&) override { return {}; }
  Status status() override { return {}; }
  const Error* failure() const override { return nullptr; }
  Status finish(const std::function<Status()>&) override { return {}; }
  bool idle() override { return true; }
  bool in_graphs() override { return false; }
  void abort(std::string_view) override {}

 private:
  std::unique_ptr<engine::Communicator> ranks_;
};

}  // namespace

Result<MakeOnGpu> use_gpu(int) {
  return MakeOnGpu([](std::unique_ptr<engine::Communicator> ranks) -> Result<std::unique_ptr<OnGpu>> {
    return std::unique_ptr<OnGpu>(std::make_unique<IdleGpu>(std::move(ranks)));
  });
}

}  // namespace gyre::plugin::nccl
