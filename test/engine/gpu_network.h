// A network in this process, in TCP's place, that moves registered memory only, also a GPU's: what it has received there the GPU sees
// by a flush and not before, which takes a while. Tests count what it moves, and have it refuse memory, or flush badly.
#pragma once
#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "transport/loopback_posted.h"
#include "transport/open_instead.h"
#include "transport/posted_fifo.h"

namespace gyre::test {

/// Takes TCP's place until its end.
struct GpuNetwork {
  GpuNetwork();
  GpuNetwork(const GpuNetwork&) = delete;
  GpuNetwork& operator=(const GpuNetwork&) = delete;
  ~GpuNetwork() { transport::open_instead("tcp", {}); }

  std::atomic<bool> moves_gpu_memory{true};
  std::atomic<int> refused{0};  ///< so many registrations of GPU memory
  enum class Flush : uint8_t { works, does_nothing, fails };
  std::atomic<Flush> flush{Flush::works};
  std::atomic<uint64_t> from_gpu{0}, to_gpu{0}, by_host{0};  ///< messages, but for those that carry credits
  std::atomic<uint64_t> flushes{0};
};

/// Memory of a GPU, and beside it what the network has written there.
class FarMemory final : public transport::Memory {
 public:
  FarMemory(std::span<std::byte> region, std::unique_ptr<transport::Memory> registered)
      : region_(region), written_(region.size()), registered_(std::move(registered)) {}

  const transport::Memory* registered() const { return registered_.get(); }
  /// Where the network writes what is to be received there.
  std::span<std::byte> away(std::span<std::byte> place) { return {written_.data() + (place.data() - region_.data()), place.size()}; }
  void came(std::span<std::byte> away) { unseen_.push_back(away); }
  /// All that has come by now; to be shown by show().
  std::vector<std::span<std::byte>> take_unseen() { return std::exchange(unseen_, {}); }
  void show(std::span<std::byte> away) { std::copy(away.begin(), away.end(), region_.begin() + (away.data() - written_.data())); }

 private:
  std::span<std::byte> region_;
  std::vector<std::byte> written_;
  std::unique_ptr<transport::Memory> registered_;
  std::vector<std::span<std::byte>> unseen_;
};

class GpuNetworkEndpoint final : public transport::Endpoint {
 public:
  GpuNetworkEndpoint(GpuNetwork& network, transport::Worker& worker, transport::Slots slots, std::unique_ptr<transport::Endpoint> inner)
      : network_(network), worker_(worker), slots_(slots), inner_(std::move(inner)) {}

  Result<bool> ready() override { return inner_->ready(); }
  std::string_view hello() const override { return inner_->hello(); }
  transport::Fifo& fifo() override {
    if (!fifo_) fifo_.emplace(*this, worker_, slots_);
    return *fifo_;
  }
  bool takes_any_memory() const override { return false; }
  transport::Request* send(uint64_t tag, std::span<const std::byte> data, const transport::Memory* memory) override {
    const auto* far = dynamic_cast<const FarMemory*>(memory);
    auto* request = inner_->send(tag, data, far != nullptr ? far->registered() : memory);
    if (request != nullptr) count(tag, far != nullptr ? network_.from_gpu : network_.by_host);
    return request;
  }
  transport::Request* receive(uint64_t tag, std::span<std::byte> place, const transport::Memory* memory) override {
    auto* far =
        const_cast<FarMemory*>(dynamic_cast<const FarMemory*>(memory));  // whose registration this is, by a network that writes there
    if (far != nullptr) place = far->away(place);
    auto* request = inner_->receive(tag, place, far != nullptr ? far->registered() : memory);
    if (request == nullptr) return nullptr;
    count(tag, far != nullptr ? network_.to_gpu : network_.by_host);
    if (far != nullptr) awaited_[request] = {far, place};
    return request;
  }
  void release(transport::Request* request) override {
    if (const auto awaited = awaited_.extract(request)) awaited.mapped().first->came(awaited.mapped().second);
    inner_->release(request);
  }

 private:
  static void count(uint64_t tag, std::atomic<uint64_t>& of) { of += tag >> 39U == 0 ? 1 : 0; }  // PostedFifo's credits have that bit

  GpuNetwork& network_;
  transport::Worker& worker_;
  transport::Slots slots_;
  std::map<transport::Request*, std::pair<FarMemory*, std::span<std::byte>>> awaited_;
  std::optional<transport::PostedFifo> fifo_;
  std::unique_ptr<transport::Endpoint> inner_;  // which writes into the fifo's memory
};

class GpuNetworkWorker final : public transport::Worker {
 public:
  GpuNetworkWorker(GpuNetwork& network, transport::Slots slots)
      : network_(network), slots_(slots), inner_(*transport::open_posted_loopback_worker(slots, 1, false)) {}

  Result<std::unique_ptr<transport::Listener>> listen() override {
    return std::unique_ptr<transport::Listener>(std::make_unique<Listener>(*this, GYRE_TRY(inner_->listen())));
  }
  Result<std::unique_ptr<transport::Endpoint>> connect(std::string_view address, std::string_view hello) override {
    return around(GYRE_TRY(inner_->connect(address, hello)));
  }
  Result<std::unique_ptr<transport::Memory>> register_memory(std::span<std::byte> region, transport::MemoryKind kind) override {
    auto registered = GYRE_TRY(inner_->register_memory(region, kind));
    if (kind == transport::MemoryKind::host) return registered;
    if (network_.refused-- > 0) return Error{Code::system, "the test does not want this memory"};
    return std::unique_ptr<transport::Memory>(std::make_unique<FarMemory>(region, std::move(registered)));
  }
  Status moves_gpu_memory() const override { return network_.moves_gpu_memory ? Status() : transport::Worker::moves_gpu_memory(); }
  Result<transport::Request*> flush(const transport::Memory& memory, const std::byte*) override {
    ++network_.flushes;
    if (network_.flush == GpuNetwork::Flush::does_nothing) return nullptr;
    auto& far = const_cast<FarMemory&>(dynamic_cast<const FarMemory&>(memory));  // as above
    return &flushes_.emplace_back(far, far.take_unseen());
  }
  void release_flush(transport::Request* request) override {
    flushes_.remove_if([&](const Flushing& one) { return &one == request; });
  }
  unsigned progress() override {
    for (Flushing& one : flushes_) move(one);
    return inner_->progress();
  }
  const Error* failure() const override { return inner_->failure(); }

 private:
  struct Flushing : transport::Request {
    Flushing(FarMemory& m, std::vector<std::span<std::byte>> w) : memory(m), what(std::move(w)) {}
    FarMemory& memory;
    std::vector<std::span<std::byte>> what;
    int left = 5;  // calls of progress()
  };
  class Listener final : public transport::Listener {
   public:
    Listener(GpuNetworkWorker& worker, std::unique_ptr<transport::Listener> inner) : worker_(worker), inner_(std::move(inner)) {}
    std::string address() const override { return inner_->address(); }
    Result<std::unique_ptr<transport::Endpoint>> accept() override { return worker_.around(GYRE_TRY(inner_->accept())); }

   private:
    GpuNetworkWorker& worker_;
    std::unique_ptr<transport::Listener> inner_;
  };

  std::unique_ptr<transport::Endpoint> around(std::unique_ptr<transport::Endpoint> inner) {
    if (inner == nullptr) return nullptr;
    return std::make_unique<GpuNetworkEndpoint>(network_, *this, slots_, std::move(inner));
  }
  void move(Flushing& one) {
    if (one.done || --one.left > 0) return;
    one.done = true;
    one.code = Code::system;
    if (network_.flush == GpuNetwork::Flush::fails) one.failure = "the test wants it to fail";
    if (one.failure != nullptr) return;
    for (const auto away : one.what) one.memory.show(away);
  }

  GpuNetwork& network_;
  transport::Slots slots_;
  std::unique_ptr<transport::Worker> inner_;
  std::list<Flushing> flushes_;
};

inline GpuNetwork::GpuNetwork() {
  transport::open_instead("tcp", [this](transport::Slots slots) -> Result<std::unique_ptr<transport::Worker>> {
    return std::unique_ptr<transport::Worker>(std::make_unique<GpuNetworkWorker>(*this, slots));
  });
}

}  // namespace gyre::test
