#include "engine/landing.h"

#include <fmt/format.h>

#include <span>
#include <utility>

namespace gyre::engine {

Result<std::unique_ptr<Landing>> Landing::open(transport::Worker& worker, Region region, size_t bytes, int dmabuf) {
  GYRE_TRY(worker.moves_gpu_memory());
  const std::span all(region.get(), bytes);
  auto memory = dmabuf >= 0 ? worker.register_dmabuf(all, {dmabuf, 0}) : worker.register_memory(all, transport::MemoryKind::cuda);
  if (!memory) return memory.error();
  return std::make_unique<Landing>(worker, std::move(region), bytes, *std::move(memory));
}

Landing::~Landing() {
  if (flush_ != nullptr) worker_.release_flush(flush_);
}

void Landing::move_on() {
  if (flush_ != nullptr) end();
  if (flush_ == nullptr && latest_ != nullptr && !failure_) begin();
}

void Landing::begin() {
  auto flush = worker_.flush(*memory_, std::exchange(latest_, nullptr));
  if (!flush) {
    failure_ = flush.error();
    return;
  }
  ++begun_;
  flush_ = *flush;
  if (flush_ == nullptr) ended_ = begun_;
}

void Landing::end() {
  if (!flush_->done) return;
  if (flush_->failure != nullptr)
    failure_ = Error{flush_->code, fmt::format("what came into GPU memory can't be shown to the GPU: {}", flush_->failure)};
  else
    ended_ = begun_;
  worker_.release_flush(std::exchange(flush_, nullptr));
}

}  // namespace gyre::engine
