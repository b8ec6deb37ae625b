// Every pair of ranks joined over loopback in one thread, for tests that drive machines by hand.
#pragma once
#include <memory>
#include <vector>

#include "transport/loopback.h"

namespace gyre::test {

class LoopbackMesh {
 public:
  LoopbackMesh(size_t ranks, transport::Slots slots)
      : ranks_(ranks), worker_(*transport::open_loopback_worker(slots)), endpoints_(ranks * ranks) {
    for (size_t high = 0; high < ranks; ++high) {
      const auto listener = *worker_->listen();
      for (size_t low = 0; low < high; ++low) {
        endpoints_[low * ranks + high] = *worker_->connect(listener->address(), "");
        endpoints_[high * ranks + low] = *listener->accept();
      }
    }
  }
  /// By peer; null for the rank itself.
  std::vector<transport::Fifo*> fifos(size_t rank) const {
    std::vector<transport::Fifo*> all;
    for (size_t peer = 0; peer < ranks_; ++peer) all.push_back(peer == rank ? nullptr : &endpoints_[rank * ranks_ + peer]->fifo());
    return all;
  }

 private:
  size_t ranks_;
  std::unique_ptr<transport::Worker> worker_;
  std::vector<std::unique_ptr<transport::Endpoint>> endpoints_;  // [rank * ranks + peer]
};

}  // namespace gyre::test
