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

Error too_late() { return {Code::cuda, "a copy of a few bytes has not ended within seconds"}; }

}  // namespace

Result<DeviceProbe> DeviceProbe::open(kernels::Gpu& gpu) {
  DeviceProbe probe(gpu);
  GYRE_TRY(probe.renew());
  return probe;
}

Status DeviceProbe::renew() {
  pinned_ = GYRE_TRY(gpu_->allocate_pinned(bytes));
  stream_ = GYRE_TRY(gpu_->open_stream());
  return {};
}

Status DeviceProbe::write(std::byte* at, uint64_t seed) {
  const Pattern pattern = pattern_of(seed);
  std::memcpy(pinned_.get(), pattern.data(), bytes);
  return GYRE_TRY(copied(pinned_.get(), at)) ? Status() : too_late();
}

// Once more, since a stream may share a hardware queue with one that waits for another rank, by chance.
Status DeviceProbe::read(const std::byte* at, uint64_t seed) {
  std::memset(pinned_.get(), 0, bytes);
  if (!GYRE_TRY(copied(at, pinned_.get()))) {
    std::memset(pinned_.get(), 0, bytes);
    if (!GYRE_TRY(copied(at, pinned_.get()))) return too_late();
  }
  const Pattern pattern = pattern_of(seed);
  if (std::memcmp(pinned_.get(), pattern.data(), bytes) == 0) return {};
  return Error{Code::cuda, "what is read there is not what was written (an IOMMU, or PCI access control, between the GPUs?)"};
}

// False: it has not ended in time; the stream and what it may still use here are left to it for good.
Result<bool> DeviceProbe::copied(const std::byte* from, std::byte* to) {
  constexpr std::chrono::seconds limit{3};  // the GPU may be busy
  constexpr std::chrono::microseconds nap{20};
  kernels::StepArgs args{};
  args.sources[0] = from, args.destinations[0] = to, args.count = bytes;
  GYRE_TRY(stream_->launch(kernels::step_kernel_of(DataType::uint8, ReduceOp::sum, kernels::Shape::one_to_one), args, 1));
  const auto until = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < until) {
    if (GYRE_TRY(stream_->done())) return true;
    std::this_thread::sleep_for(nap);
  }
  std::ignore = stream_.release(), std::ignore = pinned_.release();
  GYRE_TRY(renew());
  return false;
}

}  // namespace gyre::engine
