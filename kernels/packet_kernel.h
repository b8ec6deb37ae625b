// The kernels of packet.h. Until a late rank has come a few threads of each block look for its word, and no more, since what all would read
// meanwhile goes over links between GPUs. Written for nvcc; test/simt runs them on the host.
#pragma once
#include "kernels/packet.h"
#include "kernels/reduce.h"

namespace gyre::kernels {

/// Whose packets are under way at a time: what the registers of a thread hold.
inline constexpr unsigned parts_at_once = 4;

GYRE_DEVICE Packet packet_of(uint32_t first, uint32_t second, uint32_t flag) {
  return {{uint64_t{flag} << 32 | first, uint64_t{flag} << 32 | second}};
}
GYRE_DEVICE bool has_come(const Packet& packet, uint32_t flag) { return packet.halves[0] >> 32 == flag && packet.halves[1] >> 32 == flag; }
GYRE_DEVICE uint32_t data_of(const Packet& packet, int half) { return static_cast<uint32_t>(packet.halves[half]); }

/// What waits for others may have to leave without them. The host's memory is far, so it is asked only now and then.
class PacketWait {
 public:
  GYRE_DEVICE explicit PacketWait(const PacketDoor* door) : door_(door) {}

  GYRE_DEVICE bool over() const { return state_ == PacketDoor::let_go; }
  GYRE_DEVICE bool held() const { return state_ == PacketDoor::held; }
  GYRE_DEVICE void ask() { state_ = load_acquire(&door_->state); }
  /// After a look in vain.
  GYRE_DEVICE void pause() {
    constexpr unsigned period = 4;
    relax();
    if (++looks_ % period == 0) ask();
  }

 private:
  const PacketDoor* door_;
  unsigned looks_ = 0;
  uint64_t state_ = PacketDoor::open;
};

/// A pack of an array's elements, of which there may be less than a pack.
template <class T>
struct PackOf {
  static constexpr size_t most = sizeof(Pack) / sizeof(T);
  bool aligned;  ///< the array
  size_t count;

  GYRE_DEVICE PackOf(const void* array, size_t elements, size_t pack)
      : aligned(reinterpret_cast<uintptr_t>(array) % sizeof(Pack) == 0),
        count(elements - pack * most < most ? elements - pack * most : most) {}

  GYRE_DEVICE Pack load(const T* from) const {
    if (aligned && count == most) return load_stream(reinterpret_cast<const Pack*>(from));
    T elements[most];
    GYRE_UNROLL
    for (size_t i = 0; i < most; ++i) elements[i] = i < count ? load_stream(from + i) : T{};
    Pack pack;
    memcpy(&pack, elements, sizeof(pack));
    return pack;
  }
  GYRE_DEVICE void store(T* to, const Pack& pack) const {
    if (aligned && count == most) return store_stream(reinterpret_cast<Pack*>(to), pack);
    T elements[most];
    memcpy(elements, &pack, sizeof(pack));
    GYRE_UNROLL
    for (size_t i = 0; i < most; ++i) {
      if (i < count) store_stream(to + i, elements[i]);
    }
  }
};

template <class R>
class PacketExchange {
 public:
  using T = typename R::Element;

  GYRE_DEVICE PacketExchange(const PacketArgs& args, Team team)
      : args_(args), team_(team), reduction_{R(args.scalar)}, packs_((args.count + PackOf<T>::most - 1) / PackOf<T>::most) {}

  GYRE_DEVICE void send() const {
    PacketBuffer& own = args_.own->at[args_.flag % 2];
    if (team_.thread == 0) store_packet(&own.word, own_word());
    const auto* input = static_cast<const T*>(args_.input);
    GYRE_ROLLED
    for (size_t i = team_.thread; i < packs_; i += team_.threads) {
      const Pack part = reduction_.one(PackOf<T>(input, args_.count, i).load(input + i * PackOf<T>::most));
      store_packet(&own.lower[i], packet_of(part.words[0], part.words[1], args_.flag));
      store_packet(&own.upper[i], packet_of(part.words[2], part.words[3], args_.flag));
    }
  }

  /// That of a rank with which this one does not agree never comes. The host is asked beside the first look, not before it: a kernel that
  /// comes late must not pass over an error, although all packets are there.
  GYRE_DEVICE void await_word(unsigned place, PacketWait& wait) const {
    Packet word = load_packet(&buffer(place).word);
    wait.ask();
    while (!wait.over() && (wait.held() || !is_word(word))) {
      wait.pause();
      word = load_packet(&buffer(place).word);
    }
  }

  GYRE_DEVICE void receive(PacketWait& wait) const {
    auto* output = static_cast<T*>(args_.output);
    GYRE_ROLLED
    for (size_t i = team_.thread; i < packs_ && !wait.over(); i += team_.threads) {
      const Pack sum = reduced(i, wait);
      if (!wait.over()) PackOf<T>(output, args_.count, i).store(output + i * PackOf<T>::most, sum);
    }
  }

 private:
  GYRE_DEVICE Packet own_word() const {
    return packet_of(static_cast<uint32_t>(args_.word), static_cast<uint32_t>(args_.word >> 32), args_.flag);
  }
  GYRE_DEVICE bool is_word(const Packet& packet) const {
    const Packet own = own_word();
    return packet.halves[0] == own.halves[0] && packet.halves[1] == own.halves[1];
  }
  GYRE_DEVICE const PacketBuffer& buffer(unsigned place) const { return args_.parts[place]->at[args_.flag % 2]; }

  struct Batch {
    Packet lower[parts_at_once], upper[parts_at_once];
  };
  /// True: all have come.
  GYRE_DEVICE bool load(Batch& batch, unsigned first, size_t i) const {
    bool all = true;
    GYRE_UNROLL
    for (unsigned k = 0; k < parts_at_once; ++k) {
      if (first + k >= args_.ranks) continue;
      batch.lower[k] = load_packet(&buffer(first + k).lower[i]);
      batch.upper[k] = load_packet(&buffer(first + k).upper[i]);
    }
    GYRE_UNROLL
    for (unsigned k = 0; k < parts_at_once; ++k) {
      if (first + k < args_.ranks) all = all && has_come(batch.lower[k], args_.flag) && has_come(batch.upper[k], args_.flag);
    }
    return all;
  }
  GYRE_DEVICE Pack reduced(size_t i, PacketWait& wait) const {
    Pack sum{};
    GYRE_ROLLED
    for (unsigned first = 0; first < args_.ranks && !wait.over(); first += parts_at_once) {
      Batch batch{};
      while (!load(batch, first, i) && !wait.over()) wait.pause();
      GYRE_UNROLL
      for (unsigned k = 0; k < parts_at_once; ++k) {
        if (first + k >= args_.ranks) continue;
        const Packet &lower = batch.lower[k], &upper = batch.upper[k];
        const Pack part{{data_of(lower, 0), data_of(lower, 1), data_of(upper, 0), data_of(upper, 1)}};
        sum = k == 0 && first == 0 ? part : reduction_.more(sum, part);
      }
    }
    return reduction_.last(sum);
  }

  const PacketArgs& args_;
  Team team_;
  OnPacks<R> reduction_;
  size_t packs_;
};

/// No flag of an earlier call is there any more, of whoever had the memory.
GYRE_DEVICE void clear_packets(PacketBuffers* buffers, Team team) {
  auto* const packets = reinterpret_cast<Packet*>(buffers);
  GYRE_ROLLED
  for (size_t i = team.thread; i < sizeof(PacketBuffers) / sizeof(Packet); i += team.threads) store_packet(packets + i, Packet{});
}

template <class R>
__global__ void __launch_bounds__(step_threads, 1) packet_kernel(const __grid_constant__ PacketArgs args) {
  const Team team{size_t{blockIdx.x} * blockDim.x + threadIdx.x, size_t{gridDim.x} * blockDim.x};
  if (args.ranks == 0) return clear_packets(args.own, team);
  const PacketExchange<R> exchange(args, team);
  exchange.send();
  // By a warp that nobody waits for until the others have come.
  if (team.thread + 1 == blockDim.x) store_release(&args.door->begun, args.ticket + 1);
  PacketWait wait(args.door);
  if (threadIdx.x < args.ranks) exchange.await_word(threadIdx.x, wait);
  // No result before all have called the same.
  const bool over = __syncthreads_or(wait.over() ? 1 : 0) != 0;
  if (!over) exchange.receive(wait);
  __syncthreads();
  // At once, since each waits until what was written before has reached the host.
  const unsigned flag = threadIdx.x * gridDim.x + blockIdx.x;
  if (flag < args.ended_flags) store_release(&args.ended[flag].value, args.ticket + 1);
}

}  // namespace gyre::kernels
