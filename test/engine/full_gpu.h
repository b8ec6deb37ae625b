// A GPU whose streams take a few kernels and no more, as one does that fails in the midst of what it is given.
#pragma once
#include "test/becomes.h"
#include "test/engine/gpu_over.h"

namespace gyre::test {

/// When a stream refuses the next kernel: at once, whether or not it has done what it took before, or once it has.
enum class Refuses : uint8_t { at_once, when_done };

class FullStream final : public StreamOver {
 public:
  using StreamOver::launch;
  FullStream(std::unique_ptr<kernels::Stream> stream, unsigned room, Refuses when)
      : StreamOver(std::move(stream)), room_(room), when_(when) {}

  Status launch(kernels::StepKernel kernel, const kernels::StepArgs& args, unsigned blocks) override {
    if (launched_++ < room_) return StreamOver::launch(kernel, args, blocks);
    if (when_ == Refuses::when_done && !becomes([this] { return has_done(); })) return Error{Code::cuda, "what was taken is not done"};
    return Error{Code::cuda, "the test wants no more kernels"};
  }

 private:
  bool has_done() {
    const auto ended = done();
    return ended && *ended;
  }

  unsigned room_, launched_ = 0;
  Refuses when_;
};

/// Each of its streams takes so many step kernels.
class FullGpu final : public GpuOver {
 public:
  FullGpu(kernels::Gpu& gpu, unsigned room, Refuses when) : GpuOver(gpu), room_(room), when_(when) {}

  Result<std::unique_ptr<kernels::Stream>> open_stream() override {
    return std::unique_ptr<kernels::Stream>(std::make_unique<FullStream>(GYRE_TRY(GpuOver::open_stream()), room_, when_));
  }

 private:
  unsigned room_;
  Refuses when_;
};

}  // namespace gyre::test
