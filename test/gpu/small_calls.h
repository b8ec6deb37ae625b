// What small all-reduces take on the GPU that is there, by packets and by the steps that they stand for.
#pragma once
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "engine/device_communicator.h"
#include "kernels/cuda_gpu.h"
#include "test/figures.h"
#include "test/gpu/must.h"

namespace gyre::test {

inline std::string word(engine::HandOff hand_off) {
  constexpr std::array words{"gates", "stays", "packets", "mapped"};
  return words.at(static_cast<size_t>(hand_off));
}

/// A rank of a communicator on the GPU, with a stream and memory.
class SmallCalls {
 public:
  SmallCalls(engine::Communicator& host, size_t most_bytes)
      : host_(host),
        gpu_(must(kernels::open_cuda_gpu(0))),
        device_(must(engine::DeviceCommunicator::create(must(host.split(0, host.rank())), *gpu_))),
        data_(must(gpu_->allocate(most_bytes))) {
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    must(cudaMemsetAsync(data_.get(), 0, most_bytes, stream_));
    must(cudaStreamSynchronize(stream_));
  }
  SmallCalls(const SmallCalls&) = delete;
  SmallCalls& operator=(const SmallCalls&) = delete;
  ~SmallCalls() { cudaStreamDestroy(stream_); }

  /// Of one call that is waited for, and of one of many behind each other.
  void measure(size_t bytes, engine::HandOff hand_off) {
    constexpr int calls = 200;
    std::vector<double> us;
    for (int i = 0; i < calls + 10; ++i) {
      must(host_.bootstrap().barrier());
      const auto begin = std::chrono::steady_clock::now();
      give(bytes, hand_off);
      must(cudaStreamSynchronize(stream_));
      if (i >= 10) us.push_back(since(begin));
    }
    must(host_.bootstrap().barrier());
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) give(bytes, hand_off);
    must(cudaStreamSynchronize(stream_));
    const double each = since(begin) / calls;
    must(device_->finish());
    if (host_.rank() != 0) return;
    say({{"figure", "small"},
         {"ranks", host_.size()},
         {"bytes", bytes},
         {"by", word(device_->given().hand_off)},
         {"us", median(us)},
         {"least_us", *std::min_element(us.begin(), us.end())},
         {"us_in_a_row", each}});
  }

 private:
  void give(size_t bytes, engine::HandOff hand_off) {
    const engine::Call call{Collective::all_reduce, bytes / sizeof(float), DataType::float32, ReduceOp::sum, 0};
    must(device_->enqueue(call, data_.get(), data_.get(), stream_, hand_off));
  }
  static double since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  }

  engine::Communicator& host_;
  std::unique_ptr<kernels::Gpu> gpu_;
  std::unique_ptr<engine::DeviceCommunicator> device_;
  kernels::GpuMemory data_;
  cudaStream_t stream_ = nullptr;
};

/// Small all-reduces by packets, and by the steps that they stand for.
inline std::string small_calls(engine::Communicator& host) {
  constexpr size_t most_bytes = size_t{64} << 10;
  SmallCalls calls(host, most_bytes);
  for (size_t bytes = 8; bytes <= most_bytes; bytes *= bytes < 1024 ? 128 : 4) {
    for (const auto hand_off : {engine::HandOff::packets, engine::HandOff::gates, engine::HandOff::stays}) calls.measure(bytes, hand_off);
  }
  return {};
}

}  // namespace gyre::test
