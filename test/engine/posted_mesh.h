// Every pair of ranks joined over posted loopback in one thread: a worker per rank, whose messages complete late and out of order.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "transport/loopback_posted.h"

namespace gyre::test {

class PostedMesh {
 public:
  PostedMesh(size_t ranks, transport::Slots slots, uint32_t seed, bool any_memory = true) : ranks_(ranks), endpoints_(ranks * ranks) {
    std::vector<std::unique_ptr<transport::Listener>> listeners;
    for (size_t rank = 0; rank < ranks; ++rank) {
      workers_.push_back(*transport::open_posted_loopback_worker(slots, seed + static_cast<uint32_t>(rank) + 1, any_memory));
      listeners.push_back(*workers_.back()->listen());
    }
    for (size_t high = 0; high < ranks; ++high) {
      for (size_t low = 0; low < high; ++low) {
        endpoints_[low * ranks + high] = *workers_[low]->connect(listeners[high]->address(), "");
        endpoints_[high * ranks + low] = *listeners[high]->accept();
      }
    }
  }
  ~PostedMesh() { endpoints_.clear(); }  // before their workers
  PostedMesh(const PostedMesh&) = delete;
  PostedMesh& operator=(const PostedMesh&) = delete;

  /// By peer; null for the rank itself.
  std::vector<transport::Fifo*> fifos(size_t rank) const {
    std::vector<transport::Fifo*> all;
    for (size_t peer = 0; peer < ranks_; ++peer) all.push_back(peer == rank ? nullptr : &endpoints_[rank * ranks_ + peer]->fifo());
    return all;
  }
  void progress(size_t rank) { workers_[rank]->progress(); }

 private:
  size_t ranks_;
  std::vector<std::unique_ptr<transport::Worker>> workers_;
  std::vector<std::unique_ptr<transport::Endpoint>> endpoints_;  // [rank * ranks + peer]
};

}  // namespace gyre::test
