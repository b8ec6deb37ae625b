// What is found out of gates on GPUs that hold streams back, are busy, or have no such operation.
#include <algorithm>
#include <string>

#include "kernels/mem.h"
#include "kernels/try_gates.h"
#include "test/catch.h"

using namespace gyre;
using namespace gyre::kernels;
using namespace std::chrono_literals;

namespace {

/// Of whose ordinary streams the first so many stand behind a closed gate.
struct GatedGpu {
  size_t held = 0;
  bool has_waits = true, is_busy = false;
  bool gets_busy = false;  ///< when there is a gate
  size_t opened = 0;
  const uint64_t* gate = nullptr;
};

class GatedStream final : public Stream {
 public:
  GatedStream(GatedGpu& gpu, bool is_held) : gpu_(gpu), is_held_(is_held) {}
  Status wait(const uint64_t* flag, uint64_t) override {
    if (!gpu_.has_waits) return Error{Code::cuda, "error 801"};
    gpu_.gate = flag;
    return {};
  }
  Result<bool> done() override {
    const bool closed = gpu_.gate != nullptr && load_acquire(gpu_.gate) == 0;
    return !gpu_.is_busy && !(gpu_.gets_busy && gpu_.gate != nullptr) && !(is_held_ && closed);
  }
  Status launch(StepKernel, const StepArgs&, unsigned) override { return {}; }
  Status launch(StayKernel, const StayArgs&, unsigned) override { return {}; }
  Status launch(PacketKernel, const PacketArgs&, unsigned) override { return {}; }
  Status raise(uint64_t*, uint64_t) override { return {}; }
  Result<uint64_t> capture_of(void*) override { return 0; }
  Status capture(void*, StayKernel, const StayArgs&, unsigned, std::shared_ptr<void>) override { return {}; }
  Status follow(void*) override { return {}; }
  Status lead(void*) override { return {}; }

 private:
  GatedGpu& gpu_;
  bool is_held_;
};

void no_step(StepArgs) {}

std::string tried(GatedGpu gpu) {
  uint64_t gate = 0;
  const auto open = [&](bool urgent) -> Result<std::unique_ptr<Stream>> {
    return std::unique_ptr<Stream>(std::make_unique<GatedStream>(gpu, !urgent && gpu.opened++ < gpu.held));
  };
  const auto trial = try_gates(open, no_step, &gate, 5ms);
  if (!trial) return trial.error().what;
  if (gpu.gate != nullptr && gate == 0) return "the gate was left closed";
  return trial->gates == Gates::pass_others ? "pass" : trial->why;
}

}  // namespace

TEST_CASE("gates are tried: one stream that shares the gate's queue does not decide, and a busy GPU decides nothing") {
  CHECK(tried({}) == "pass");
  CHECK(tried({.held = 1}) == "pass");
  CHECK(tried({.held = 99}) == "streams stand still behind a closed gate");
  CHECK(tried({.is_busy = true}) == "the GPU is busy");
  CHECK(tried({.gets_busy = true}) == "the GPU is busy");
}

TEST_CASE("gates are tried: where streams can't wait for flags that is no error") { CHECK(tried({.has_waits = false}) == "error 801"); }
