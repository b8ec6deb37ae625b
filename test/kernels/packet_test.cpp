#include "kernels/packet.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

#include "kernels/reduce_host.h"
#include "test/catch.h"
#include "test/kernels/patterns.h"
#include "test/kernels/reference.h"
#include "test/kernels/step_memory.h"
#include "test/kernels/step_runner.h"

using namespace gyre;
using namespace gyre::kernels;
using test::Bytes;

namespace {

constexpr uint32_t packet_flag = 0x80000001;
constexpr uint64_t packet_word = 0x0123456789abcdef;

Packet packet(uint32_t first, uint32_t second) { return {{uint64_t{packet_flag} << 32 | first, uint64_t{packet_flag} << 32 | second}}; }

/// A third, rounded to the type, or something large.
uint64_t packet_scalar(DataType type, ReduceOp op, unsigned ranks) {
  if (is_integer(type)) return op == ReduceOp::avg ? ranks : 0x8765432187654321 & test::pattern_mask(type);
  return avg_scalar_bits(type, 3);
}

/// What a rank sends of its elements.
Bytes sent_part(DataType type, ReduceOp op, uint64_t scalar, const std::byte* input, size_t count) {
  Bytes part(count * size_of(type));
  const Arithmetic& host = arithmetic(type, op);
  if (host.scale != nullptr)
    host.scale(part.data(), input, count, factor_of(type, scalar));
  else
    copy(part.data(), input, part.size());
  return part;
}

/// What ranks have for each other, and one of them in the midst of a call.
class PacketsOfRanks {
 public:
  explicit PacketsOfRanks(unsigned ranks) : buffers_(ranks), door_(1), ended_(3) {
    args_.own = &buffers_[own()];
    for (unsigned rank = 0; rank < ranks; ++rank) args_.parts[rank] = &buffers_[rank];
    args_.ranks = ranks, args_.flag = packet_flag, args_.word = packet_word, args_.ticket = 6;
    args_.door = door_.data();
    args_.ended = ended_.data(), args_.ended_flags = static_cast<uint32_t>(ended_.size());
  }
  size_t own() const { return buffers_.size() / 2; }
  PacketArgs& args() { return args_; }
  PacketDoor& door() { return door_[0]; }
  PacketBuffer& buffer(size_t rank) { return buffers_[rank].at[packet_flag % 2]; }

  void leave(size_t rank, const Bytes& part, uint64_t theirs = packet_word) {
    PacketBuffer& to = buffer(rank);
    to.word = packet(static_cast<uint32_t>(theirs), static_cast<uint32_t>(theirs >> 32));
    Bytes whole = part;
    whole.resize((part.size() + sizeof(Pack) - 1) / sizeof(Pack) * sizeof(Pack));
    for (size_t i = 0; i < whole.size() / sizeof(Pack); ++i) {
      Pack pack;
      std::copy_n(whole.data() + i * sizeof(Pack), sizeof(Pack), reinterpret_cast<std::byte*>(&pack));
      to.lower[i] = packet(pack.words[0], pack.words[1]);
      to.upper[i] = packet(pack.words[2], pack.words[3]);
    }
  }
  bool has_left(const Bytes& part) {
    PacketsOfRanks other(1);
    other.leave(0, part);
    const auto same = [](const Packet& a, const Packet& b) { return a.halves[0] == b.halves[0] && a.halves[1] == b.halves[1]; };
    const PacketBuffer &mine = buffer(own()), &wanted = other.buffer(0);
    return same(mine.word, wanted.word) && std::equal(mine.lower, std::end(mine.lower), wanted.lower, same) &&
           std::equal(mine.upper, std::end(mine.upper), wanted.upper, same);
  }
  bool ended() const {
    return door_[0].begun == 7 && std::all_of(ended_.begin(), ended_.end(), [](const BlockFlag& f) { return f.value == 7; });
  }

 private:
  test::SharedVector<PacketBuffers> buffers_;
  test::SharedVector<PacketDoor> door_;
  test::SharedVector<BlockFlag> ended_;
  PacketArgs args_{};
};

/// Of a type's arithmetic, with all parts but one there already; `offset`: of input and output, in elements, from a multiple of 16 bytes.
bool reduces_rightly(DataType type, ReduceOp op, unsigned ranks, size_t count, size_t offset, bool in_place) {
  const size_t arrays = in_place ? ranks : ranks + 1;
  test::StepMemory memory(type, arrays, count, std::vector<size_t>(arrays, offset));
  PacketsOfRanks exchange(ranks);
  const uint64_t scalar = packet_scalar(type, op, ranks);
  Bytes sum, own;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const Bytes part = sent_part(type, op, scalar, memory.at(rank), count);
    if (rank != exchange.own())
      exchange.leave(rank, part);
    else
      own = part;
    if (rank == 0)
      sum = part;
    else
      arithmetic(type, op).combine(sum.data(), sum.data(), part.data(), count);
  }
  if (arithmetic(type, op).divide != nullptr) arithmetic(type, op).divide(sum.data(), count, scalar);
  std::byte* const output = memory.at(in_place ? exchange.own() : ranks);
  PacketArgs& args = exchange.args();
  args.input = memory.at(exchange.own()), args.output = output, args.count = count, args.scalar = scalar;
  test::run_packets(packet_kernel_of(type, op), args);
  const test::Patterns found = test::unpacked(type, Bytes(output, output + sum.size())), wanted = test::unpacked(type, sum);
  const bool same =
      std::equal(found.begin(), found.end(), wanted.begin(), [&](uint64_t a, uint64_t b) { return test::same_result(type, a, b); });
  const bool right = same && memory.only_changed({output}) && exchange.ended() && (type != DataType::int32 || exchange.has_left(own));
  if (!right) UNSCOPED_INFO(name(type) << " " << name(op) << ", " << ranks << " ranks, " << count << " elements, offset " << offset);
  return right;
}

}  // namespace

TEST_CASE("a kernel of packets reduces all ranks' parts in their order, of any size, wherever the memory lies", "[packets]") {
  for (const DataType type : all_data_types()) {
    const size_t pack = 16 / size_of(type);
    for (size_t op = 0; op < every_reduce_op_count; ++op) {
      for (const size_t count : std::initializer_list<size_t>{1, pack - 1, pack, pack + 1, 150 * pack + 1}) {
        if (count == 0) continue;
        const auto ranks = static_cast<unsigned>(2 + (op + count) % 6);
        CHECK(reduces_rightly(type, static_cast<ReduceOp>(op), ranks, count, 0, false));
        CHECK(reduces_rightly(type, static_cast<ReduceOp>(op), ranks, count, 1, true));
      }
    }
    CHECK(reduces_rightly(type, ReduceOp::sum, 8, PacketBuffer::most_bytes / size_of(type), 0, true));
  }
}

TEST_CASE("a kernel of packets that is let go ends without parts that lack, and writes no result", "[packets]") {
  for (const bool differs : {false, true}) {
    test::SharedVector<int32_t> data(100, 5);
    PacketsOfRanks exchange(2);
    if (differs) exchange.leave(0, Bytes(400, std::byte{1}), packet_word + 1);
    exchange.args().input = exchange.args().output = data.data();
    exchange.args().count = data.size();
    exchange.door().state = PacketDoor::let_go;
    test::run_packets(packet_kernel_of(DataType::int32, ReduceOp::sum), exchange.args());
    CHECK(exchange.ended());
    CHECK(std::all_of(data.begin(), data.end(), [](int32_t value) { return value == 5; }));
  }
}

TEST_CASE("cleared buffers of packets have no flags", "[packets]") {
  test::SharedVector<PacketBuffers> buffers(1);
  auto* const numbers = reinterpret_cast<uint64_t*>(buffers.data());
  constexpr size_t count = sizeof(PacketBuffers) / sizeof(uint64_t);
  std::fill_n(numbers, count, ~uint64_t{0});
  PacketArgs args{};
  args.own = buffers.data();
  test::run_packets(packet_kernel_of(DataType::uint8, ReduceOp::sum), args);
  CHECK(std::all_of(numbers, numbers + count, [](uint64_t number) { return number == 0; }));
}
