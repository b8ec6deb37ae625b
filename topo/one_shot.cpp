#include "topo/bucket.h"
#include "topo/families.h"

namespace gyre::topo {
namespace {

using schedule::Buffer;

// Each rank begins with another peer, so that not all send to the same.
schedule::Schedule all_to_all(const Shape& shape) {
  schedule::Builder b("one_shot", {shape.collective, shape.ranks, shape.root, shape.channels}, shape.channels);
  for (uint32_t c = 0; c < shape.channels; ++c) {
    b.channel(c);
    const auto block = [&](Buffer buffer, Rank r) { return schedule::Chunks{buffer, static_cast<uint32_t>(r) * shape.channels + c, 1}; };
    for (Rank r = 0; r < shape.ranks; ++r) {
      for (int i = 1; i < shape.ranks; ++i) {
        const Rank to = (r + i) % shape.ranks;
        b.step(r, {}, block(Buffer::input, to), {}, {&to, 1});
      }
      b.step(r, {}, block(Buffer::input, r), block(Buffer::output, r), {});
      for (int i = 1; i < shape.ranks; ++i) {
        const Rank from = (r + shape.ranks - i) % shape.ranks;
        b.step(r, {&from, 1}, {}, block(Buffer::output, from), {});
      }
    }
  }
  return std::move(b).build();
}

schedule::Schedule all_reduce(const Shape& shape) {
  schedule::Builder b("one_shot", {shape.collective, shape.ranks, shape.root, shape.channels}, shape.channels);
  if (shape.ordered) b.ordered();
  for (uint32_t c = 0; c < shape.channels && shape.ranks > 1; ++c) {
    b.channel(c);
    for (Rank r = 0; r < shape.ranks; ++r) {
      std::vector<Rank> others;
      for (Rank i = 0; i < shape.ranks; ++i) {
        if (i != r) others.push_back(i);
      }
      // By way of scratch: a peer that reads our memory in its own time must not find our result there already (see fuse.h).
      b.step(r, {}, {Buffer::input, c, 1}, {Buffer::scratch, c, 1}, others);
      b.step(r, others, {Buffer::input, c, 1}, {Buffer::output, c, 1}, {}, static_cast<uint32_t>(r));
    }
  }
  return std::move(b).build();
}

}  // namespace

schedule::Schedule one_shot(const Shape& shape) {
  if (shape.collective == Collective::all_to_all) return all_to_all(shape);
  if (shape.collective == Collective::all_reduce) return all_reduce(shape);
  return bucket_over("one_shot", shape, *one_shot_lines(shape));
}

}  // namespace gyre::topo
