// Links the GPU's kernels, which a static library alone does not, and loads them all. Without a GPU they must say so in one clear line.
#include "kernels/load_steps.h"

#include <cstdio>
#include <set>

#include "kernels/table.h"

using namespace gyre;
using namespace gyre::kernels;

int main() {
  std::set<StepKernel> kernels;
  for (DataType type : all_data_types()) {
    for (size_t op = 0; op < every_reduce_op_count; ++op) {
      for (size_t shape = 0; shape < shape_count; ++shape)
        kernels.insert(step_kernel_of(type, static_cast<ReduceOp>(op), static_cast<Shape>(shape)));
    }
  }
  const Status loaded = load_step_kernels();
  const std::string said = loaded ? "all loaded" : loaded.error().what;
  std::printf("%zu kernels: %s\n", kernels.size(), said.c_str());
  const bool explained = loaded || said.starts_with("the kernel of int8 sum, shape 0, can't be loaded: ");
  return kernels.count(nullptr) == 0 && kernels.size() > 200 && explained ? 0 : 1;
}
