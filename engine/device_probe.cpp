#include "engine/device_probe.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <thread>
#include <tuple>

#include "kernels/table.h"

namespace gyre::engine {
namespace {

using Pattern = std::array<uint64_t, DeviceProbe::bytes / sizeof(uint64_t)>;

Pattern pattern_of(uint64_t seed) {
  Pattern pattern;
  for (uint64_t& word : pattern) word = seed = seed * 6364136223846793005 + 1442695040888963407;  // Knuth's
  return pattern;
}

}  // namespace

Result<DeviceProbe> DeviceProbe::open(kernels::Gpu& gpu) {
  DeviceProbe probe;
  probe.pinned_ = GYRE_TRY(gpu.allocate_pinned(bytes));
  probe.stream_ = GYRE_TRY(gpu.open_stream());
  return probe;
}

Status DeviceProbe::write(std::byte* at, uint64_t seed) {
  const Pattern pattern = pattern_of(seed);
  std::memcpy(pinned_.get(), pattern.data(), bytes);
  return copy(pinned_.get(), at);
}

Status DeviceProbe::read(const std::byte* at, uint64_t seed) {
  std::memset(pinned_.get(), 0, bytes);
  GYRE_TRY(copy(at, pinned_.get()));
  const Pattern pattern = pattern_of(seed);
  if (std::memcmp(pinned_.get(), pattern.data(), bytes) == 0) return {};
  return Error{Code::cuda, "what is read there is not what was written (an IOMMU, or PCI access control, between the GPUs?)"};
}

// What a kernel that does not end may still use is left to it for good.
Status DeviceProbe::copy(const std::byte* from, std::byte* to) {
  constexpr std::chrono::seconds limit{5};  // the GPU may be busy
  constexpr std::chrono::microseconds nap{20};
  kernels::StepArgs args{};
  args.sources[0] = from, args.destinations[0] = to, args.count = bytes;
  GYRE_TRY(stream_->launch(kernels::step_kernel_of(DataType::uint8, ReduceOp::sum, kernels::Shape::one_to_one), args, 1));
  const auto until = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < until) {
    if (GYRE_TRY(stream_->done())) return {};
    std::this_thread::sleep_for(nap);
  }
  std::ignore = stream_.release(), std::ignore = pinned_.release();
  return Error{Code::cuda, fmt::format("a copy of {} bytes has not ended within {} s", bytes, limit.count())};
}

}  // namespace gyre::engine
