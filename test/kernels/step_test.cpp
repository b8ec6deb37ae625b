#include "kernels/table.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <random>
#include <set>
#include <string>
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
using test::StepMemory;

namespace {

/// How far apart from a multiple of 16 bytes the pointers are: in elements, sources first.
using Offsets = std::vector<size_t>;

struct Operation {
  DataType type;
  ReduceOp op;
  Shape shape;

  std::string text() const {
    return std::string(name(type)) + " " + std::string(name(op)) + ", shape " + std::to_string(static_cast<int>(shape));
  }
  size_t sources() const {
    constexpr std::array<size_t, shape_count> counts{1, 1, 2, 2, 3, 5};
    return counts[static_cast<size_t>(shape)];
  }
  size_t destinations() const {
    constexpr std::array<size_t, shape_count> counts{1, 2, 1, 2, 1, 3};
    return counts[static_cast<size_t>(shape)];
  }
  bool listed() const { return shape == Shape::many_to_many; }
  size_t pointers() const { return sources() + destinations(); }
};

std::vector<Operation> all_operations() {
  std::vector<Operation> all;
  for (DataType type : all_data_types()) {
    for (size_t op = 0; op < every_reduce_op_count; ++op) {
      for (size_t shape = 0; shape < shape_count; ++shape) all.push_back({type, static_cast<ReduceOp>(op), static_cast<Shape>(shape)});
    }
  }
  return all;
}

/// A third, rounded to the type, or something large; of averages of integers, ranks.
uint64_t scalar_of(DataType type, ReduceOp op) {
  if (is_integer(type)) return op == ReduceOp::avg ? 3 : 0x8765432187654321 & test::pattern_mask(type);
  constexpr std::array<uint64_t, 6> thirds{0x3555, 0x3eaaaaab, 0x3fd5555555555555, 0x3eab, 0x2b, 0x35};
  return thirds[static_cast<size_t>(type) - static_cast<size_t>(DataType::float16)];
}

/// Each source of a list has its own, where that may be.
uint64_t scalar_of(DataType type, ReduceOp op, size_t source) {
  return op == ReduceOp::premul_sum && source % 2 == 1 ? avg_scalar_bits(type, static_cast<int>(source) + 2) : scalar_of(type, op);
}
constexpr uint32_t own_of_list = 2;
constexpr uint64_t ticket_of_list = 77;

/// What a kernel makes of a list; by the host's, as below.
Bytes expected_of_list(const Operation& operation, const std::vector<const std::byte*>& sources, size_t count) {
  const auto [type, op, shape] = operation;
  const Arithmetic& host = arithmetic(type, op);
  Bytes result(count * size_of(type)), part(result.size());
  for (size_t s = 0; s < sources.size(); ++s) {
    const auto factor = factor_of(type, scalar_of(type, op, s));
    if (host.scale != nullptr && s == own_of_list) {
      host.scale_combine(result.data(), sources[s], result.data(), count, factor);
      continue;
    }
    if (host.scale != nullptr)
      host.scale(part.data(), sources[s], count, factor);
    else
      copy(part.data(), sources[s], part.size());
    if (s == 0)
      result = part;
    else
      host.combine(result.data(), result.data(), part.data(), count);
  }
  if (host.divide != nullptr) host.divide(result.data(), count, scalar_of(type, op));
  return result;
}

/// By the host's kernels, which other tests compare with slow arithmetic.
Bytes expected(const Operation& operation, const std::vector<const std::byte*>& sources, size_t count) {
  if (operation.listed()) return expected_of_list(operation, sources, count);
  const auto [type, op, shape] = operation;
  const Arithmetic& host = arithmetic(type, op);
  const uint64_t scalar = scalar_of(type, op);
  Bytes result(count * size_of(type));
  if (sources.size() == 1) {
    if (host.scale != nullptr)
      host.scale(result.data(), sources[0], count, factor_of(type, scalar));
    else
      copy(result.data(), sources[0], result.size());
    return result;
  }
  if (host.scale_combine != nullptr)
    host.scale_combine(result.data(), sources[0], sources[1], count, factor_of(type, scalar));
  else
    host.combine(result.data(), sources[0], sources[1], count);
  for (size_t i = 2; i < sources.size(); ++i) host.combine(result.data(), result.data(), sources[i], count);
  if (host.divide != nullptr) host.divide(result.data(), count, scalar);
  return result;
}

bool same(DataType type, const std::byte* found, const Bytes& wanted) {
  if (std::equal(wanted.begin(), wanted.end(), found)) return true;
  const test::Patterns a = test::unpacked(type, Bytes(found, found + wanted.size())), b = test::unpacked(type, wanted);
  for (size_t i = 0; i < a.size(); ++i) {
    if (test::same_result(type, a[i], b[i])) continue;
    UNSCOPED_INFO("element " << i << " of " << a.size() << ": " << std::hex << a[i] << ", expected " << b[i]);
    return false;
  }
  return true;
}

StepList list_of(const Operation& operation, const std::vector<const std::byte*>& sources, const std::vector<std::byte*>& destinations) {
  StepList list{};
  list.ticket = ticket_of_list;
  list.sources = static_cast<uint32_t>(sources.size()), list.destinations = static_cast<uint32_t>(destinations.size());
  list.own = own_of_list;
  for (size_t s = 0; s < sources.size(); ++s) list.source[s] = sources[s], list.scalar[s] = scalar_of(operation.type, operation.op, s);
  std::copy(destinations.begin(), destinations.end(), list.destination);
  return list;
}

/// Runs the kernel on `count` elements; destination d lies on source in_place[d], where there is one.
bool is_right(const Operation& operation, size_t count, const Offsets& offsets, const std::vector<size_t>& in_place = {}) {
  StepMemory memory(operation.type, operation.pointers(), count, offsets);
  std::vector<const std::byte*> sources;
  for (size_t i = 0; i < operation.sources(); ++i) sources.push_back(memory.at(i));
  const Bytes wanted = expected(operation, sources, count);

  std::vector<std::byte*> destinations;
  for (size_t i = 0; i < operation.destinations(); ++i)
    destinations.push_back(memory.at(i < in_place.size() ? in_place[i] : sources.size() + i));
  const test::SharedVector<StepList> list(1, operation.listed() ? list_of(operation, sources, destinations) : StepList{});
  StepArgs args{{}, {}, nullptr, count, scalar_of(operation.type, operation.op)};
  if (operation.listed()) {
    args.list = list.data(), args.scalar = ticket_of_list;
  } else {
    std::copy(sources.begin(), sources.end(), args.sources);
    std::copy(destinations.begin(), destinations.end(), args.destinations);
  }
  const StepKernel kernel = step_kernel_of(operation.type, operation.op, operation.shape);
  test::run_step(kernel, args);

  bool right = memory.only_changed(destinations);
  if (!right) UNSCOPED_INFO("wrote elsewhere");
  for (const std::byte* destination : destinations) right = right && same(operation.type, destination, wanted);
  if (!right) UNSCOPED_INFO(operation.text() << ", " << count << " elements");
  return right;
}

}  // namespace

TEST_CASE("step kernels compute what the host's do, of any size, wherever the memory lies", "[step]") {
  for (const Operation& operation : all_operations()) {
    const size_t pack = 16 / size_of(operation.type);
    const Offsets none(operation.pointers()), equal(operation.pointers(), 1);
    Offsets own;
    for (size_t i = 0; i < operation.pointers(); ++i) own.push_back(i + 1);
    // More than all threads take at once in whole batches, and some packs, and some elements.
    for (const size_t count : std::initializer_list<size_t>{0, 1, pack - 1, pack, pack + 1, 40 * pack + 1, 700 * pack + pack - 1}) {
      CHECK(is_right(operation, count, none));
      CHECK(is_right(operation, count, equal));
      CHECK(is_right(operation, count, own));
    }
    // More than the threads of a GPU's blocks take at once, too.
    CHECK(is_right(operation, 9000 * pack, none));
  }
}

TEST_CASE("one pointer that lies otherwise than the rest is enough to go by element", "[step]") {
  for (const Operation& operation : all_operations()) {
    const size_t count = 9 * 16 / size_of(operation.type);
    for (size_t i = 0; i < operation.pointers(); ++i) {
      Offsets one(operation.pointers());
      one[i] = 1;
      CHECK(is_right(operation, count, one));
    }
  }
}

TEST_CASE("step kernels write over what they have read", "[step]") {
  for (const Operation& operation : all_operations()) {
    const size_t count = 300 * 16 / size_of(operation.type) + 1;
    const Offsets none(operation.pointers());
    CHECK(is_right(operation, count, none, {0}));
    CHECK(is_right(operation, count, none, {operation.sources() - 1}));
    if (operation.shape == Shape::two_to_two) CHECK(is_right(operation, count, none, {0, 1}));
    if (operation.listed()) CHECK(is_right(operation, count, none, {3, 0, 2}));
  }
}

TEST_CASE("a kernel with a list does nothing where that is another ticket's, and takes as many pointers as it may have", "[step]") {
  constexpr size_t count = 1000;
  test::SharedVector<uint32_t> values(StepList::most * count, 1);
  test::SharedVector<StepList> list(1, StepList{});
  list[0].ticket = 4, list[0].sources = list[0].destinations = StepList::most;
  for (size_t i = 0; i < StepList::most; ++i) list[0].source[i] = list[0].destination[i] = values.data() + i * count;
  const StepKernel kernel = step_kernel_of(DataType::uint32, ReduceOp::sum, Shape::many_to_many);
  for (const uint64_t ticket : {uint64_t{3}, uint64_t{5}}) test::run_step(kernel, {{}, {}, list.data(), count, ticket});
  CHECK(std::all_of(values.begin(), values.end(), [](uint32_t value) { return value == 1; }));
  test::run_step(kernel, {{}, {}, list.data(), count, 4});
  CHECK(std::all_of(values.begin(), values.end(), [](uint32_t value) { return value == StepList::most; }));
}

TEST_CASE("averages of bytes are exact for any number of ranks", "[step]") {
  test::SharedVector<std::byte> values(256), zeros(256), found(256);
  for (size_t i = 0; i < 256; ++i) values[i] = static_cast<std::byte>(i);
  for (DataType type : {DataType::int8, DataType::uint8}) {
    const StepKernel kernel = step_kernel_of(type, ReduceOp::avg, Shape::two_to_one);
    size_t wrong = 0;
    for (uint64_t ranks = 1; ranks < 0x80000000; ranks = ranks < 300 ? ranks + 1 : 2 * ranks + 1) {
      const StepArgs args{{values.data(), zeros.data(), nullptr}, {found.data(), nullptr}, nullptr, found.size(), ranks};
      test::run_step(kernel, args);
      for (size_t i = 0; i < 256; ++i) wrong += std::to_integer<uint64_t>(found[i]) == test::reference_divide(type, i, ranks) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("averages of wider integers are exact for any number of ranks", "[step]") {
  for (DataType type : {DataType::int32, DataType::uint32, DataType::int64, DataType::uint64}) {
    const StepKernel kernel = step_kernel_of(type, ReduceOp::avg, Shape::two_to_one);
    test::Patterns sums = test::special_patterns(type);
    std::mt19937_64 random(1);
    while (sums.size() < 300) sums.push_back(random() & test::pattern_mask(type));
    const Bytes packed = test::packed(type, sums);
    test::SharedVector<std::byte> values(packed.begin(), packed.end()), zeros(packed.size()), found(packed.size());
    size_t wrong = 0;
    for (const uint64_t ranks : std::initializer_list<uint64_t>{1, 2, 3, 6, 7, 10, 641, 65535, 65537, 100'000, 0x7ffffffe, 0x7fffffff}) {
      test::run_step(kernel, {{values.data(), zeros.data(), nullptr}, {found.data(), nullptr}, nullptr, sums.size(), ranks});
      const test::Patterns quotients = test::unpacked(type, Bytes(found.begin(), found.end()));
      for (size_t i = 0; i < sums.size(); ++i) wrong += quotients[i] == test::reference_divide(type, sums[i], ranks) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("types whose arithmetic is the same share kernels, others have their own", "[step]") {
  const auto kernel = [](DataType type, ReduceOp op, Shape shape) { return step_kernel_of(type, op, shape); };
  CHECK(kernel(DataType::int8, ReduceOp::sum, Shape::two_to_one) == kernel(DataType::uint8, ReduceOp::sum, Shape::two_to_one));
  CHECK(kernel(DataType::int8, ReduceOp::max, Shape::two_to_one) != kernel(DataType::uint8, ReduceOp::max, Shape::two_to_one));
  CHECK(kernel(DataType::float32, ReduceOp::avg, Shape::two_to_one) == kernel(DataType::float32, ReduceOp::premul_sum, Shape::two_to_one));
  CHECK(kernel(DataType::int32, ReduceOp::avg, Shape::two_to_one) != kernel(DataType::int32, ReduceOp::sum, Shape::two_to_one));
  std::set<StepKernel> shapes;
  for (size_t shape = 0; shape < shape_count; ++shape) shapes.insert(kernel(DataType::float32, ReduceOp::sum, static_cast<Shape>(shape)));
  CHECK(shapes.size() == shape_count);
}

TEST_CASE("a step has a block for each 32 KiB, one at least", "[step]") {
  constexpr size_t block = 32768;
  CHECK(step_blocks(0, 8) == 1);
  CHECK(step_blocks(block, 8) == 1);
  CHECK(step_blocks(block + 1, 8) == 2);
  CHECK(step_blocks(8 * block, 8) == 8);
  CHECK(step_blocks(100 * block, 8) == 8);
  CHECK(step_blocks(~size_t{0}, 264) == 264);
  CHECK(step_blocks(block, 0) == 1);
}

TEST_CASE("a kernel that stays does items as step kernels do, and leaves when it is told", "[step]") {
  constexpr size_t count = 1001;
  for (const Operation& operation : all_operations()) {
    if (operation.listed()) continue;
    StepMemory memory(operation.type, operation.pointers(), count, Offsets(operation.pointers()));
    std::vector<const std::byte*> sources;
    for (size_t i = 0; i < operation.sources(); ++i) sources.push_back(memory.at(i));
    const Bytes wanted = expected(operation, sources, count);
    test::SharedVector<StayItem> items(8);
    StayItem& item = items[5];
    for (size_t i = 0; i < sources.size(); ++i) item.step.sources[i] = sources[i];
    for (size_t i = 0; i < operation.destinations(); ++i) item.step.destinations[i] = memory.at(sources.size() + i);
    item.step.count = count;
    item.step.scalar = scalar_of(operation.type, operation.op);
    const bool multiplied = arithmetic(operation.type, operation.op).scale != nullptr;
    item.ticket = 13;
    item.what = sources.size() > 1 ? StayItem::What::reduce : multiplied ? StayItem::What::multiply : StayItem::What::copy;
    items[6].ticket = 6;  // of the lap before
    test::SharedVector<uint64_t> gate(1, 15);
    test::SharedVector<BlockFlag> ended(test::step_runner_blocks());
    test::run_stay(stay_kernel_of(operation.type, operation.op), {items.data(), 8, gate.data(), ended.data(), 13, 15});
    INFO(operation.text());
    for (size_t i = 0; i < operation.destinations(); ++i) CHECK(same(operation.type, memory.at(sources.size() + i), wanted));
    for (const BlockFlag& flag : ended) CHECK(flag.value == 14);
  }
}
