#include "test/kernels/step_runner.h"

#include <new>

#include "test/simt/executor.h"

namespace gyre::test {
namespace {

constexpr simt::Grid grid{2, 64, 0};
constexpr auto alignment = std::align_val_t{128};

}  // namespace

void run_step(kernels::StepKernel kernel, const kernels::StepArgs& args) {
  simt::launch(grid, [&] { kernel(args); });
}
void run_stay(kernels::StayKernel kernel, const kernels::StayArgs& args) {
  simt::launch(grid, [&] { kernel(args); });
}
void run_packets(kernels::PacketKernel kernel, const kernels::PacketArgs& args) {
  simt::launch(grid, [&] { kernel(args); });
}
unsigned step_runner_blocks() { return grid.blocks; }

void* allocate_shared(size_t bytes) { return ::operator new(bytes, alignment); }
void free_shared(void* memory, size_t /*bytes*/) { ::operator delete(memory, alignment); }

}  // namespace gyre::test
