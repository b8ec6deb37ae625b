#include <algorithm>

#include "topo/families.h"

namespace gyre::topo {
namespace {

using schedule::Buffer;
using schedule::Chunks;

// One channel: each member below is what its collective means, without any art. The server is the root, or rank 0.
class Naive {
 public:
  Naive(schedule::Builder& b, const Shape& shape, uint32_t channel)
      : b_(b), shape_(shape), channel_(channel), server_(rooted(shape.collective) ? shape.root : 0), others_(all_but(server_)) {
    b_.channel(channel);
  }

  void all_reduce() {
    for (const Rank r : others_) send(r, 0, server_);
    b_.step(server_, others_, in(0), out(0), others_, place());
    for (const Rank r : others_) receive(r, server_, 0);
  }
  void reduce() {
    for (const Rank r : others_) send(r, 0, server_);
    b_.step(server_, others_, in(0), out(0), {}, place());
  }
  void broadcast() {
    b_.step(server_, {}, in(0), {}, others_);
    for (const Rank r : others_) receive(r, server_, 0);
  }
  void gather() {
    for (const Rank r : others_) {
      send(r, 0, server_);
      receive(server_, r, r);
    }
  }
  void scatter() {
    for (const Rank r : others_) {
      send(server_, r, r);
      receive(r, server_, 0);
    }
  }
  void reduce_scatter() {  // blocks are reduced one by one, each to its rank
    for (Rank block = 0; block < shape_.ranks; ++block) {
      for (const Rank r : others_) send(r, block, server_);
      const bool own = block == server_;
      b_.step(server_, others_, in(block), own ? out(0) : Chunks{}, {&block, own ? 0U : 1U}, place());
    }
    for (const Rank r : others_) receive(r, server_, 0);
  }
  void all_gather() {  // blocks are gathered one by one, each going on to all ranks that lack it
    for (Rank block = 0; block < shape_.ranks; ++block) {
      auto to = others_;
      std::erase(to, block);
      if (block == server_) {
        b_.step(server_, {}, in(0), {}, to);
      } else {
        send(block, 0, server_);
        b_.step(server_, {&block, 1}, {}, out(block), to);
      }
    }
    for (const Rank r : others_) {
      for (const Rank block : all_but(r)) receive(r, server_, block);
    }
  }
  void all_to_all() {
    for (Rank r = 0; r < shape_.ranks; ++r) {
      for (const Rank peer : all_but(r)) send(r, peer, peer);
      b_.step(r, {}, in(r), out(r), {});
      for (const Rank peer : all_but(r)) receive(r, peer, peer);
    }
  }

 private:
  std::vector<Rank> all_but(Rank rank) const {
    std::vector<Rank> all;
    for (Rank r = 0; r < shape_.ranks; ++r) {
      if (r != rank) all.push_back(r);
    }
    return all;
  }
  Chunks in(Rank block) const { return {Buffer::input, static_cast<uint32_t>(block) * shape_.channels + channel_, 1}; }
  Chunks out(Rank block) const { return {Buffer::output, static_cast<uint32_t>(block) * shape_.channels + channel_, 1}; }
  void send(Rank from, Rank block, Rank to) { b_.step(from, {}, in(block), {}, {&to, 1}); }
  void receive(Rank rank, Rank from, Rank block) { b_.step(rank, {&from, 1}, {}, out(block), {}); }
  uint32_t place() const { return static_cast<uint32_t>(server_); }  // sums are in the order of ranks

  schedule::Builder& b_;
  const Shape& shape_;
  uint32_t channel_;
  Rank server_;
  std::vector<Rank> others_;
};

}  // namespace

schedule::Schedule naive(const Shape& shape) {
  constexpr void (Naive::*writers[])() = {&Naive::all_reduce, &Naive::reduce_scatter, &Naive::all_gather, &Naive::broadcast,
                                          &Naive::reduce,     &Naive::all_to_all,     &Naive::gather,     &Naive::scatter};
  static_assert(std::size(writers) == collective_count);  // in the order of Collective
  schedule::Builder b("naive", {shape.collective, shape.ranks, shape.root, shape.channels}, shape.channels);
  if (shape.ordered) b.ordered();
  for (uint32_t c = 0; c < shape.channels; ++c) {
    Naive channel(b, shape, c);
    if (shape.ranks > 1 || shape.collective == Collective::all_to_all) (channel.*writers[static_cast<size_t>(shape.collective)])();
  }
  return std::move(b).build();
}

}  // namespace gyre::topo
