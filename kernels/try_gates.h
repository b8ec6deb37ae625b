// Whether a GPU's streams go on while one of them waits before a closed gate, found out by trying. It must not know: CUDA.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "kernels/gpu.h"

namespace gyre::kernels {

enum class Gates : uint8_t {
  unknown,      ///< the GPU is busy, and would look as if it held them
  pass_others,  ///< some at least: CUDA has several hardware queues, and what shares the gate's waits
  hold_others,  ///< or can't be waited for at all
};

struct GateTrial {
  Gates gates = Gates::unknown;
  std::string why{};  ///< of what is not pass_others
};

/// `urgent`: of the highest priority, as those that wait before gates are, else as the program's.
using OpenStream = std::function<Result<std::unique_ptr<Stream>>(bool urgent)>;
/// `kernel` is run with nothing to do; `gate` is a pinned flag, 0. Looks up to three times so long.
Result<GateTrial> try_gates(const OpenStream&, StepKernel kernel, uint64_t* gate, std::chrono::milliseconds limit);

}  // namespace gyre::kernels
