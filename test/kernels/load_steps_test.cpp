// Links the GPU's kernels, which a static library alone does not, and loads them all. Without a GPU they must say so in one clear line.
// Where a GPU's context can't be entered nothing is asked of another one.
#include "kernels/load_steps.h"

#include <cstdio>
#include <set>

#include "kernels/cuda_place.h"
#include "kernels/packet.h"
#include "kernels/table.h"

using namespace gyre;
using namespace gyre::kernels;

namespace {

bool stays_out() {
  Place place;
  place.driver.push = [](CUcontext) { return CUDA_ERROR_INVALID_CONTEXT; };
  place.driver.pop = [](CUcontext*) { return CUDA_ERROR_INVALID_CONTEXT; };
  const auto memory = place.allocate(1);
  const std::string said = memory ? "there is memory" : memory.error().what;
  std::printf("a context that can't be entered: %s\n", said.c_str());
  return said == "cuCtxPushCurrent: error 201";
}

}  // namespace

int main() {
  std::set<StepKernel> kernels;
  std::set<PacketKernel> packets;
  for (DataType type : all_data_types()) {
    for (size_t op = 0; op < every_reduce_op_count; ++op) {
      for (size_t shape = 0; shape < shape_count; ++shape)
        kernels.insert(step_kernel_of(type, static_cast<ReduceOp>(op), static_cast<Shape>(shape)));
      packets.insert(packet_kernel_of(type, static_cast<ReduceOp>(op)));
    }
  }
  const Status loaded = load_step_kernels();
  const std::string said = loaded ? "all loaded" : loaded.error().what;
  std::printf("%zu kernels: %s\n", kernels.size(), said.c_str());
  const bool explained = loaded || said.starts_with("the kernel of int8 sum, shape 0, can't be loaded: ");
  return kernels.count(nullptr) == 0 && kernels.size() > 200 && packets.count(nullptr) == 0 && packets.size() > 50 && explained &&
                 stays_out()
             ? 0
             : 1;
}
