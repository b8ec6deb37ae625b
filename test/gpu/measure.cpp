// What the kernels and the hand-off take on the GPU that is there: a JSON line per figure on stdout, in words on stderr.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/device_communicator.h"
#include "kernels/cuda_gpu.h"
#include "kernels/mem.h"
#include "test/figures.h"
#include "test/gpu/must.h"
#include "test/gpu/small_calls.h"
#include "test/ranks.h"

using namespace gyre;
using namespace gyre::kernels;
using test::median;
using test::must;
using test::say;
using test::word;

namespace {

constexpr size_t MiB = 1 << 20;
constexpr int repeats = 20;

/// Seconds of one of `repeats`, by the GPU's clock; the median of 5 times so many.
double seconds_of(const std::function<void()>& enqueue) {
  cudaEvent_t begin = nullptr, end = nullptr;
  must(cudaEventCreate(&begin));
  must(cudaEventCreate(&end));
  std::vector<double> all;
  for (int round = 0; round < 6; ++round) {
    must(cudaEventRecord(begin, nullptr));
    for (int i = 0; i < repeats; ++i) enqueue();
    must(cudaEventRecord(end, nullptr));
    must(cudaEventSynchronize(end));
    float milliseconds = 0;
    must(cudaEventElapsedTime(&milliseconds, begin, end));
    if (round > 0) all.push_back(milliseconds / 1e3 / repeats);
  }
  must(cudaEventDestroy(begin));
  must(cudaEventDestroy(end));
  return median(all);
}

double copy_bandwidth(Gpu& gpu) {
  constexpr size_t bytes = 1024 * MiB;
  const GpuMemory from = must(gpu.allocate(bytes)), to = must(gpu.allocate(bytes));
  const double seconds = seconds_of([&] { must(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice, nullptr)); });
  const double rate = 2 * static_cast<double>(bytes) / seconds / 1e9;
  say({{"figure", "copy of the card"}, {"bytes", bytes}, {"gb_per_s", rate}});
  return rate;
}

struct Traffic {
  const char* name;
  Shape shape;
  size_t sources, destinations;
};

/// The GPU's multiprocessors.
int processors() {
  int count = 0;
  must(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

/// How much of the GPU's multiprocessors a step takes from other kernels while its message comes over a network of 400 Gb/s: each block
/// one, as far as there are.
double sm_time_of_wire_time(size_t bytes, unsigned blocks, double seconds) {
  constexpr double wire = 50e9;  // bytes per second
  const auto all = static_cast<double>(processors());
  return std::min(static_cast<double>(blocks), all) / all * seconds / (static_cast<double>(bytes) / wire);
}

void step_bandwidth(Gpu& gpu, const Traffic& traffic, size_t bytes, unsigned blocks, double copy) {
  std::vector<GpuMemory> memory;
  for (size_t i = 0; i < traffic.sources + traffic.destinations; ++i) memory.push_back(must(gpu.allocate(bytes)));
  StepArgs args{};
  for (size_t i = 0; i < traffic.sources; ++i) args.sources[i] = memory[i].get();
  for (size_t i = 0; i < traffic.destinations; ++i) args.destinations[i] = memory[traffic.sources + i].get();
  args.count = bytes / sizeof(float);
  const StepKernel kernel = step_kernel_of(DataType::float32, ReduceOp::sum, traffic.shape);
  void* list[] = {&args};
  const double seconds = seconds_of(
      [&] { must(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(step_threads), list, 0, nullptr)); });
  const double rate = static_cast<double>((traffic.sources + traffic.destinations) * bytes) / seconds / 1e9;
  say({{"figure", "step"},
       {"shape", traffic.name},
       {"bytes", bytes},
       {"blocks", blocks},
       {"us", seconds * 1e6},
       {"gb_per_s", rate},
       {"of_copy", rate / copy},
       {"sm_time_of_wire_time", sm_time_of_wire_time(bytes, blocks, seconds)}});
}

/// From the host's flag to a kernel and back to the host's eyes.
void round_trip(Gpu& gpu, engine::HandOff hand_off) {
  constexpr uint64_t trips = 80;
  const GpuMemory flags = must(gpu.allocate_pinned(4096)), data = must(gpu.allocate(4096)),
                  ring = must(gpu.allocate_pinned(128 * sizeof(StayItem)));
  auto* gate = reinterpret_cast<uint64_t*>(flags.get());
  auto* ended = reinterpret_cast<BlockFlag*>(flags.get() + 1024);
  auto* items = reinterpret_cast<StayItem*>(ring.get());
  const auto stream = must(gpu.open_stream());
  StepArgs args{};
  args.sources[0] = data.get(), args.destinations[0] = data.get() + 2048, args.count = 16;
  if (hand_off == engine::HandOff::gates) {
    for (uint64_t i = 1; i <= trips; ++i) {
      must(stream->wait(gate, i));
      must(stream->launch(step_kernel_of(DataType::float32, ReduceOp::sum, Shape::one_to_one), args, 1));
      must(stream->raise(&ended->value, i));
    }
  } else {
    for (uint64_t i = 0; i < 128; ++i) items[i] = {i, StayItem::What::copy, args};
    must(stream->launch(stay_kernel_of(DataType::float32, ReduceOp::sum), StayArgs{items, 128, gate, ended, 0, trips}, 1));
  }
  std::vector<double> us;
  for (uint64_t i = 1; i <= trips; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    store_release(gate, i);
    while (load_acquire(&ended->value) < i) engine::relax_processor();
    us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  us.erase(us.begin(), us.begin() + 10);
  say({{"figure", "round trip"}, {"by", word(hand_off)}, {"us", median(us)}, {"least_us", *std::min_element(us.begin(), us.end())}});
}

/// What the GPU moves for a call that all ranks have just given.
size_t bytes_of_all(engine::Communicator& host, const engine::DeviceCommunicator& device) {
  size_t bytes = 0;
  for (const std::string& theirs : must(host.all_gather(std::to_string(device.given().bytes)))) bytes += std::stoull(theirs);
  return bytes;
}

std::string all_reduce(engine::Communicator& host, size_t bytes, engine::HandOff hand_off, double copy) {
  const auto gpu = must(open_cuda_gpu(0));
  auto second = must(host.split(0, host.rank()));
  const auto device = must(engine::DeviceCommunicator::create(std::move(second), *gpu));
  const GpuMemory data = must(gpu->allocate(bytes));
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  must(cudaMemsetAsync(data.get(), 0, bytes, stream));
  const engine::Call call{Collective::all_reduce, bytes / sizeof(float), DataType::float32, ReduceOp::sum, 0};
  std::vector<double> seconds;
  for (int i = 0; i < 6; ++i) {
    must(cudaStreamSynchronize(stream));
    must(host.bootstrap().barrier());
    const auto begin = std::chrono::steady_clock::now();
    must(device->enqueue(call, data.get(), data.get(), stream, hand_off));
    must(cudaStreamSynchronize(stream));
    if (i > 0) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  must(device->finish());
  must(cudaStreamDestroy(stream));
  const auto& given = device->given();
  const auto moved = static_cast<double>(bytes_of_all(host, *device));
  if (host.rank() == 0) {
    const double rate = moved / median(seconds) / 1e9;
    say({{"figure", "all_reduce"},
         {"ranks", host.size()},
         {"bytes", bytes},
         {"by", word(given.hand_off)},  // a kernel that stays, too, where a stream does not take so many operations
         {"asked", word(hand_off)},
         {"algorithm", given.algorithm},
         {"on", device->all_on_gpus() ? "gpu" : "host"},
         {"kernels", given.kernels},
         {"us", median(seconds) * 1e6},
         {"gb_per_s", static_cast<double>(bytes) / median(seconds) / 1e9},
         {"moved_bytes", moved},
         {"moved_gb_per_s", rate},
         {"of_copy", rate / copy}});
  }
  return {};
}

/// What these go by: `auto` takes what is mapped, where there is that, whatever is asked for here.
std::string algorithm_for(size_t bytes, engine::HandOff hand_off) {
  if (hand_off == engine::HandOff::mapped) return "two_shot";
  return bytes < MiB ? "one_shot" : "ring";
}

void all_reduces(int ranks, double copy, const std::vector<engine::HandOff>& hand_offs) {
  for (const size_t bytes : {size_t{1024}, MiB, 64 * MiB, 1024 * MiB}) {
    for (const auto hand_off : hand_offs) {
      const std::vector<std::string> settings{"GYRE_TRANSPORT=shm", "GYRE_TIMEOUT=60", "GYRE_ALGORITHM=" + algorithm_for(bytes, hand_off)};
      const std::string wrong = test::first_wrong(test::run_ranks(
          ranks, test::all_configured(settings), [&](engine::Communicator& host) { return all_reduce(host, bytes, hand_off, copy); }));
      if (!wrong.empty()) throw std::runtime_error(wrong);
    }
  }
}

void measure() {
  cudaDeviceProp device{};
  must(cudaGetDeviceProperties(&device, 0));
  say({{"figure", "machine"}, {"gpu", device.name}, {"multiprocessors", device.multiProcessorCount}, {"memory", device.totalGlobalMem}});
  const auto gpu = must(open_cuda_gpu(0));
  const double copy = copy_bandwidth(*gpu);
  for (const Traffic& traffic :
       {Traffic{"1->1", Shape::one_to_one, 1, 1}, Traffic{"2->1", Shape::two_to_one, 2, 1}, Traffic{"2->2", Shape::two_to_two, 2, 2}}) {
    for (const size_t bytes : {MiB, 16 * MiB, 64 * MiB, 256 * MiB}) {
      for (const unsigned most : {8U, 16U, 32U, ~0U}) step_bandwidth(*gpu, traffic, bytes, step_blocks(bytes, most), copy);
    }
  }
  for (const auto hand_off : {engine::HandOff::gates, engine::HandOff::stays}) round_trip(*gpu, hand_off);
  for (const int ranks : {2, 4}) {
    const std::string wrong = test::first_wrong(test::run_ranks(
        ranks, test::all_configured({"GYRE_TRANSPORT=shm", "GYRE_TIMEOUT=60", "GYRE_ALGORITHM=one_shot"}), test::small_calls));
    if (!wrong.empty()) throw std::runtime_error(wrong);
  }
  const std::vector by_messages{engine::HandOff::gates, engine::HandOff::stays};
  all_reduces(1, copy, by_messages);
  for (const int ranks : {2, 4}) all_reduces(ranks, copy, {engine::HandOff::mapped, engine::HandOff::gates, engine::HandOff::stays});
  ::setenv("NCCL_P2P_DISABLE", "1", 1);
  for (const int ranks : {2, 4}) all_reduces(ranks, copy, by_messages);  // by pinned memory of the host
}

}  // namespace

int main() {
  try {
    measure();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "measure: {}\n", error.what());
    return 1;
  }
}
