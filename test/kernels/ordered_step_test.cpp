// The kernels of ordered numerics: the bits of the host's, whatever forms sources and destinations have, of any size and wherever they lie.
#include "kernels/ordered.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <random>

#include "kernels/canonical.h"
#include "test/catch.h"
#include "test/kernels/patterns.h"
#include "test/kernels/step_runner.h"

using namespace gyre;
using namespace gyre::kernels;
using test::Bytes;

namespace {

constexpr std::array converted_types{DataType::float16, DataType::bfloat16, DataType::float8e4m3, DataType::float8e5m2};
constexpr uint32_t every_form = 32;  // combinations of OrderedFlag

/// An operand in memory of the kernel's, some elements from where packs begin.
class Operand {
 public:
  Operand(DataType type, bool partial, size_t count, size_t offset, unsigned seed)
      : type_(partial ? DataType::float32 : type), first_(offset * size_of(type_)), bytes_(count * size_of(type_)) {
    const test::Patterns special = test::special_patterns(type_);
    std::mt19937_64 random(seed);
    test::Patterns patterns;
    for (size_t i = 0; i < count; ++i) patterns.push_back(i % 4 == 0 ? special[random() % special.size()] : random());
    memory_.resize(first_ + bytes_ + 64);
    const Bytes packed = test::packed(type_, patterns);
    std::copy(packed.begin(), packed.end(), memory_.begin() + static_cast<ptrdiff_t>(first_));
  }
  std::byte* data() { return memory_.data() + first_; }
  Bytes bytes() { return {data(), data() + bytes_}; }
  bool guarded() const {
    return std::all_of(memory_.begin() + static_cast<ptrdiff_t>(first_ + bytes_), memory_.end(),
                       [](std::byte b) { return b == std::byte{}; });
  }
  bool same(const Bytes& wanted) {
    const test::Patterns a = test::unpacked(type_, bytes()), b = test::unpacked(type_, wanted);
    for (size_t i = 0; i < a.size(); ++i) {
      if (!test::same_result(type_, a[i], b[i])) return false;
    }
    return guarded();
  }

 private:
  DataType type_;
  size_t first_, bytes_;
  test::SharedVector<std::byte> memory_;
};

struct Form {
  DataType type;
  ReduceOp op;
  uint32_t flags;
  bool has(uint32_t flag) const { return (flags & flag) != 0; }
};

bool is_right(const Form& form, size_t sources, size_t count, size_t offset, bool stays) {
  Operand first(form.type, form.has(first_is_partial), count, offset, 1);
  Operand second(form.type, form.has(second_is_partial), count, 2 * offset, 2);
  Operand one(form.type, form.has(to_partial), count, offset, 3), two(form.type, form.has(to_partial), count, 3 * offset, 4);
  const Factor factor{0.375, 1};
  std::vector<CanonicalReduction::Source> from{{first.data(), form.has(first_is_partial), form.has(first_multiplied) ? &factor : nullptr}};
  if (sources == 2) from.push_back({second.data(), form.has(second_is_partial), form.has(second_multiplied) ? &factor : nullptr});
  CanonicalReduction host;
  host.bind(form.type, form.op, 2);
  Bytes wanted = one.bytes();
  host(wanted.data(), !form.has(to_partial), from, schedule::Association::tree, count);

  const StepArgs args{{first.data(), sources == 2 ? second.data() : nullptr, nullptr},
                      {one.data(), offset != 0 ? two.data() : nullptr},
                      nullptr,
                      count,
                      ordered_scalar(0.375F, form.flags)};
  if (stays) {
    test::SharedVector<StayItem> items(1, StayItem{0, StayItem::What::reduce, args});
    test::SharedVector<uint64_t> gate(1, 1);
    test::SharedVector<BlockFlag> ended(test::step_runner_blocks());
    test::run_stay(ordered_stay_kernel_of(form.type, form.op), {items.data(), 1, gate.data(), ended.data(), 0, 1});
  } else {
    test::run_step(ordered_kernel_of(form.type, form.op), args);
  }
  return one.same(wanted) && (offset == 0 || two.same(wanted));
}

}  // namespace

TEST_CASE("kernels of ordered numerics have the host's bits in every form", "[step][ordered]") {
  for (const DataType type : converted_types) {
    for (uint32_t flags = 0; flags < every_form; ++flags) {
      const Form form{type, flags % 3 == 0 ? ReduceOp::prod : ReduceOp::sum, flags};
      if ((form.has(first_is_partial) && form.has(first_multiplied)) || (form.has(second_is_partial) && form.has(second_multiplied)))
        continue;  // partial sums are not multiplied
      INFO(name(type) << " " << name(form.op) << ", flags " << flags);
      for (const size_t count : std::initializer_list<size_t>{0, 1, 3, 4, 777}) {
        for (const size_t offset : std::initializer_list<size_t>{0, 1, 4}) {
          CHECK(is_right(form, 2, count, offset, false));
          CHECK(is_right(form, 2, count, offset, true));
          const bool as_it_is = form.has(first_is_partial) ? form.has(to_partial) : !form.has(first_multiplied) && !form.has(to_partial);
          if (!as_it_is && form.op == ReduceOp::sum) CHECK(is_right(form, 1, count, offset, false));  // else it is copied, not converted
        }
      }
    }
  }
}
