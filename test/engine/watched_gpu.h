// A GPU that counts what it is asked by threads that must make no call into CUDA, since one may stand behind a call of the program's: those
// that move collectives, which are all but a rank's own.
#pragma once
#include <atomic>
#include <memory>
#include <utility>

#include "test/engine/gpu_over.h"

namespace gyre::test {

class Watch {
 public:
  /// This thread may call.
  static void allow() { allowed_ = true; }
  void note() { strangers_ += allowed_ ? 0 : 1; }
  int strangers() const { return strangers_; }

 private:
  static inline thread_local bool allowed_ = false;
  std::atomic<int> strangers_{0};
};

class WatchedStream final : public StreamOver {
 public:
  WatchedStream(std::unique_ptr<kernels::Stream> stream, std::shared_ptr<Watch> watch)
      : StreamOver(std::move(stream)), watch_(std::move(watch)) {}

 private:
  void called() override { watch_->note(); }

  std::shared_ptr<Watch> watch_;  // it may outlive the GPU
};

class WatchedGpu final : public GpuOver {
 public:
  explicit WatchedGpu(kernels::Gpu& gpu) : GpuOver(gpu) {}

  Result<std::unique_ptr<kernels::Stream>> open_stream() override {
    return std::unique_ptr<kernels::Stream>(std::make_unique<WatchedStream>(GYRE_TRY(GpuOver::open_stream()), watch_));
  }
  int strangers() const { return watch_->strangers(); }

 private:
  void called() override { watch_->note(); }

  std::shared_ptr<Watch> watch_ = std::make_shared<Watch>();
};

}  // namespace gyre::test
