#include "kernels/reduce_host.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <ios>
#include <random>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/kernels/patterns.h"
#include "test/kernels/reference.h"

using namespace gyre;
using namespace gyre::kernels;
using test::Bytes;
using test::packed;
using test::Pairs;
using test::pairs_of;
using test::Patterns;
using test::unpacked;

namespace {

constexpr std::array<std::string_view, 3> all_isas{"portable", "avx2", "avx512"};

/// Scalars that `type` has: those of averages and, where they are exact, some that only a user would choose.
std::vector<double> scalars_of(DataType type) {
  std::vector<double> scalars{-3.5, 192.0};
  for (int ranks : {1, 2, 3, 7, 100}) scalars.push_back(avg_scalar(type, ranks));
  if (type == DataType::bfloat16) scalars.insert(scalars.end(), {0x1p100, -0x1p-100});
  return scalars;
}

/// How many of `found` are not as `expected`; the first is shown with a failing check.
size_t differences(DataType type, const Bytes& found, const Patterns& expected, const Pairs& inputs) {
  const Patterns patterns = unpacked(type, found);
  size_t count = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (test::same_result(type, patterns[i], expected[i])) continue;
    if (count++ != 0) continue;
    UNSCOPED_INFO(std::hex << inputs.a[i] << ", " << inputs.b[i] << ": " << patterns[i] << ", expected " << expected[i]);
  }
  return count;
}

/// Those of which neither a sum nor a product is NaN: some kernels are quicker then.
Pairs numbers_of(DataType type) {
  const Pairs all = pairs_of(type);
  const auto number = [&](ReduceOp op, uint64_t a, uint64_t b) {
    const double result = is_integer(type) ? 0 : test::float_value(type, test::reference_combine(type, op, a, b));
    return result == result;
  };
  Pairs some;
  for (size_t i = 0; i < all.a.size(); ++i) {
    if (!number(ReduceOp::sum, all.a[i], all.b[i]) || !number(ReduceOp::prod, all.a[i], all.b[i])) continue;
    some.a.push_back(all.a[i]);
    some.b.push_back(all.b[i]);
  }
  return some;
}

/// Bytes that begin so far behind a line's beginning.
class Placed {
 public:
  Placed(const Bytes& bytes, size_t behind) : room_(bytes.size() + behind + 64), size_(bytes.size()) {
    begin_ = behind + (0 - reinterpret_cast<uintptr_t>(room_.data())) % 64;
    std::copy(bytes.begin(), bytes.end(), data());
  }
  std::byte* data() { return room_.data() + begin_; }
  Bytes bytes() { return {data(), data() + size_}; }

 private:
  Bytes room_;
  size_t begin_, size_;
};

/// Bytes after which none may be written.
class Guarded {
 public:
  explicit Guarded(size_t bytes, const void* from = nullptr) : room_(bytes + 64, std::byte{0xa5}) {
    if (from != nullptr) copy(data(), from, bytes);
  }
  std::byte* data() { return room_.data(); }
  /// Just these bytes, and nothing after them.
  bool holds(const void* bytes) const {
    const auto end = room_.end() - 64;
    return std::memcmp(room_.data(), bytes, room_.size() - 64) == 0 &&
           std::all_of(end, room_.end(), [](std::byte x) { return x == std::byte{0xa5}; });
  }

 private:
  Bytes room_;
};

void describe(DataType type, ReduceOp op, std::string_view isa) {
  UNSCOPED_INFO(std::string(name(type)) << " " << std::string(name(op)) << " " << std::string(isa));
}

}  // namespace

TEST_CASE("combine agrees with slow arithmetic for every type and op", "[kernels]") {
  for (DataType type : all_data_types()) {
    const Pairs pairs = pairs_of(type);
    const Bytes a = packed(type, pairs.a);
    const Bytes b = packed(type, pairs.b);
    for (ReduceOp op : all_reduce_ops()) {
      Patterns expected;
      for (size_t i = 0; i < pairs.a.size(); ++i) expected.push_back(test::reference_combine(type, op, pairs.a[i], pairs.b[i]));
      for (std::string_view isa : all_isas) {
        const Arithmetic* kernels = arithmetic(type, op, isa);
        if (!kernels) continue;
        Bytes found(a.size());
        kernels->combine(found.data(), a.data(), b.data(), expected.size());
        describe(type, op, isa);
        CHECK(differences(type, found, expected, pairs) == 0);
        Bytes one(a.size()), other(a.size());
        kernels->combine_both(one.data(), other.data(), a.data(), b.data(), expected.size());
        CHECK(differences(type, one, expected, pairs) == 0);
        CHECK(other == one);
        one = a, other = b;  // in place, as two ranks do
        kernels->combine_both(one.data(), other.data(), one.data(), other.data(), expected.size());
        CHECK(differences(type, one, expected, pairs) == 0);
        CHECK(other == one);
      }
    }
  }
}

TEST_CASE("what is not a number is the same one on all processors, but for its sign", "[kernels]") {
  const Pairs pairs = pairs_of(DataType::bfloat16);
  const Bytes a = packed(DataType::bfloat16, pairs.a), b = packed(DataType::bfloat16, pairs.b);
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod}) {
    for (std::string_view isa : all_isas) {
      const Arithmetic* kernels = arithmetic(DataType::bfloat16, op, isa);
      if (!kernels) continue;
      Bytes one(a.size()), other(a.size());
      kernels->combine_both(one.data(), other.data(), a.data(), b.data(), pairs.a.size());
      const Patterns found = unpacked(DataType::bfloat16, one);
      describe(DataType::bfloat16, op, isa);
      CHECK(std::count_if(found.begin(), found.end(), [](uint64_t x) { return (x & 0x7fff) > 0x7f80; }) > 0);
      CHECK(std::count_if(found.begin(), found.end(), [](uint64_t x) { return (x & 0x7fff) > 0x7f80 && (x & 0x7fff) != 0x7fff; }) == 0);
    }
  }
}

TEST_CASE("combine agrees with slow arithmetic wherever the arrays begin and end, where nothing is NaN", "[kernels]") {
  for (DataType type : all_data_types()) {
    const Pairs pairs = numbers_of(type);
    REQUIRE(pairs.a.size() * size_of(type) > 4096);
    const Bytes a = packed(type, pairs.a), b = packed(type, pairs.b);
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod}) {
      Patterns expected;
      for (size_t i = 0; i < pairs.a.size(); ++i) expected.push_back(test::reference_combine(type, op, pairs.a[i], pairs.b[i]));
      for (std::string_view isa : all_isas) {
        const Arithmetic* kernels = arithmetic(type, op, isa);
        if (!kernels) continue;
        for (const size_t behind : {size_t{0}, size_of(type)}) {
          const auto agree = [&](Placed& one, Placed& other, Placed& left, Placed& right) {
            kernels->combine_both(one.data(), other.data(), left.data(), right.data(), expected.size());
            describe(type, op, isa);
            CHECK(differences(type, one.bytes(), expected, pairs) == 0);
            CHECK(one.bytes() == other.bytes());
          };
          Placed left(a, behind), right(b, behind), one(a, behind), other(b, behind), odd(a, size_of(type) - behind);
          kernels->combine(one.data(), left.data(), right.data(), expected.size());
          describe(type, op, isa);
          CHECK(differences(type, one.bytes(), expected, pairs) == 0);
          agree(one, other, left, right);
          agree(one, odd, left, right);
          agree(left, right, left, right);  // in place, as two ranks do
        }
      }
    }
  }
}

TEST_CASE("an average of floats scales with one rounding, fused into the sum", "[kernels]") {
  for (DataType type : all_data_types()) {
    if (is_integer(type)) continue;
    const Pairs pairs = pairs_of(type);
    const Bytes x = packed(type, pairs.a);
    const Bytes received = packed(type, pairs.b);
    for (double s : scalars_of(type)) {
      Patterns scaled, combined;
      for (size_t i = 0; i < pairs.a.size(); ++i) {
        scaled.push_back(test::reference_scale(type, pairs.a[i], s));
        combined.push_back(test::reference_scale_combine(type, pairs.a[i], pairs.b[i], s));
      }
      for (std::string_view isa : all_isas) {
        const Arithmetic* kernels = arithmetic(type, ReduceOp::avg, isa);
        if (!kernels) continue;
        Bytes found(x.size());
        kernels->scale(found.data(), x.data(), scaled.size(), {s, 1});
        describe(type, ReduceOp::avg, isa);
        UNSCOPED_INFO("scale " << s);
        CHECK(differences(type, found, scaled, pairs) == 0);
        kernels->scale_combine(found.data(), x.data(), received.data(), combined.size(), {s, 1});
        describe(type, ReduceOp::avg, isa);
        UNSCOPED_INFO("scale_combine " << s);
        CHECK(differences(type, found, combined, pairs) == 0);
      }
    }
  }
}

TEST_CASE("an average of integers is divided toward zero", "[kernels]") {
  for (DataType type : all_data_types()) {
    if (!is_integer(type)) continue;
    const Pairs pairs = pairs_of(type);
    for (uint64_t n : std::initializer_list<uint64_t>{1, 2, 3, 7, 64, 255, 1000, 0x7fffffff, 0xffffffff, 1ULL << 62}) {
      Patterns expected;
      for (uint64_t x : pairs.a) expected.push_back(test::reference_divide(type, x, n));
      for (std::string_view isa : all_isas) {
        const Arithmetic* kernels = arithmetic(type, ReduceOp::avg, isa);
        if (!kernels) continue;
        Bytes found = packed(type, pairs.a);
        kernels->divide(found.data(), expected.size(), n);
        describe(type, ReduceOp::avg, isa);
        UNSCOPED_INFO("divided by " << n);
        CHECK(differences(type, found, expected, pairs) == 0);
      }
    }
  }
}

namespace {

/// Where a kernel's output is: apart, or over its first or second input.
enum class Place { apart, first, second };

/// Runs `kernel(dst, a, b, count)` on `count` elements from `offset` on; true when exactly those became as in `result`.
template <class Kernel>
bool only_touches_its_range(size_t element, size_t offset, size_t count, Place place, const Bytes& a, const Bytes& b, const Bytes& result,
                            Kernel kernel) {
  Bytes first = a, second = b, apart(a.size(), std::byte{0x5a});
  Bytes& out = place == Place::apart ? apart : place == Place::first ? first : second;
  Bytes expected = out;
  if (count != 0) std::memcpy(expected.data() + offset * element, result.data() + offset * element, count * element);
  kernel(out.data() + offset * element, first.data() + offset * element, second.data() + offset * element, count);
  return out == expected;
}

/// Tries a kernel with all counts, offsets and places; returns how many went wrong.
template <class Kernel>
size_t wrong_shapes(DataType type, Kernel kernel) {
  std::mt19937_64 random(3);
  const size_t element = size_of(type);
  const size_t total = 1004;
  Patterns a, b;
  for (size_t i = 0; i < total; ++i) {  // floats below 2: no NaN, whose bits may depend on where in the array it is
    a.push_back(is_integer(type) ? random() : random() & (test::pattern_mask(type) >> 2));
    b.push_back(is_integer(type) ? random() : random() & (test::pattern_mask(type) >> 2));
  }
  const Bytes a_bytes = packed(type, a), b_bytes = packed(type, b);
  Bytes result(total * element);
  kernel(result.data(), a_bytes.data(), b_bytes.data(), total);
  size_t wrong = 0;
  for (size_t count : std::initializer_list<size_t>{0, 1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 1000}) {
    for (size_t offset : std::initializer_list<size_t>{0, 1, 3}) {
      for (Place place : {Place::apart, Place::first, Place::second}) {
        wrong += !only_touches_its_range(element, offset, count, place, a_bytes, b_bytes, result, kernel);
      }
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("kernels work on any count, alignment and in place, and touch nothing else", "[kernels]") {
  for (DataType type : all_data_types()) {
    for (std::string_view isa : all_isas) {
      for (ReduceOp op : all_reduce_ops()) {
        const Arithmetic* kernels = arithmetic(type, op, isa);
        if (!kernels) continue;
        describe(type, op, isa);
        CHECK(wrong_shapes(type, kernels->combine) == 0);
        size_t wrong = 0;  // of what is stored a second time
        const auto to_both = [&](void* out, const void* x, const void* r, size_t n) {
          Guarded other(n * size_of(type));
          kernels->combine_both(out, other.data(), x, r, n);
          wrong += !other.holds(out);
        };
        const auto to_other = [&](void* out, const void* x, const void* r, size_t n) {
          Guarded first(n * size_of(type));
          kernels->combine_both(first.data(), out, x, r, n);
          wrong += !first.holds(out);
        };
        const auto crossed = [&](void* out, const void* x, const void* r, size_t n) {
          Guarded left(n * size_of(type), x), right(n * size_of(type), r);
          kernels->combine_both(right.data(), left.data(), left.data(), right.data(), n);
          wrong += !left.holds(right.data());
          copy(out, right.data(), n * size_of(type));
        };
        CHECK(wrong_shapes(type, to_both) == 0);
        CHECK(wrong_shapes(type, to_other) == 0);
        CHECK(wrong_shapes(type, crossed) == 0);
        CHECK(wrong == 0);
        const double s = avg_scalar(type, 3);
        if (kernels->scale) {
          const auto scale = [&](void* out, const void* x, const void*, size_t n) { kernels->scale(out, x, n, {s, 1}); };
          const auto fused = [&](void* out, const void* x, const void* r, size_t n) { kernels->scale_combine(out, x, r, n, {s, 1}); };
          CHECK(wrong_shapes(type, scale) == 0);
          CHECK(wrong_shapes(type, fused) == 0);
        }
        if (kernels->divide) {
          const auto copy_and_divide = [&](void* out, const void* x, const void*, size_t n) {
            if (out != x) copy(out, x, n * size_of(type));
            kernels->divide(out, n, 3);
          };
          CHECK(wrong_shapes(type, copy_and_divide) == 0);
        }
      }
    }
  }
}

TEST_CASE("a pre-multiplied sum multiplies by any element: floats with one rounding, fused into the sum, integers wrapping", "[kernels]") {
  std::mt19937_64 random(11);
  for (DataType type : all_data_types()) {
    const Pairs pairs = pairs_of(type);
    const Bytes x = packed(type, pairs.a);
    const Bytes received = packed(type, pairs.b);
    Patterns scalars = test::special_patterns(type);
    for (int i = 0; i < 8; ++i) scalars.push_back(random() & test::pattern_mask(type));
    for (const uint64_t bits : scalars) {
      Patterns scaled, combined;
      for (size_t i = 0; i < pairs.a.size(); ++i) {
        scaled.push_back(test::reference_premultiply(type, pairs.a[i], bits));
        combined.push_back(test::reference_premultiply_combine(type, pairs.a[i], pairs.b[i], bits));
      }
      for (std::string_view isa : all_isas) {
        const Arithmetic* kernels = arithmetic(type, ReduceOp::premul_sum, isa);
        if (!kernels) continue;
        Bytes found(x.size());
        kernels->scale(found.data(), x.data(), scaled.size(), factor_of(type, bits));
        describe(type, ReduceOp::premul_sum, isa);
        UNSCOPED_INFO("scale by " << std::hex << bits);
        CHECK(differences(type, found, scaled, pairs) == 0);
        kernels->scale_combine(found.data(), x.data(), received.data(), combined.size(), factor_of(type, bits));
        describe(type, ReduceOp::premul_sum, isa);
        UNSCOPED_INFO("scale_combine by " << std::hex << bits);
        CHECK(differences(type, found, combined, pairs) == 0);
      }
    }
  }
}

TEST_CASE("a factor is made of the element's bits and no others", "[kernels]") {
  CHECK(factor_of(DataType::float16, 0xabcd3c00).real == 1);
  CHECK(factor_of(DataType::bfloat16, 0xbf80).real == -1);
  CHECK(factor_of(DataType::float32, 0xffffffff40400000).real == 3);
  CHECK(factor_of(DataType::float64, 0xc008000000000000).real == -3);
  CHECK(factor_of(DataType::float8e4m3, 0x7e).real == 448);
  CHECK(factor_of(DataType::float8e5m2, 0xfb).real == -57344);
  CHECK(factor_of(DataType::int64, 0xfffffffffffffffd).whole == 0xfffffffffffffffd);
}

TEST_CASE("only averages and pre-multiplied sums multiply, only averages divide", "[kernels]") {
  for (DataType type : all_data_types()) {
    for (size_t i = 0; i < every_reduce_op_count; ++i) {
      const auto op = static_cast<ReduceOp>(i);
      const Arithmetic& kernels = arithmetic(type, op);
      const bool avg = op == ReduceOp::avg;
      const bool multiplies = op == ReduceOp::premul_sum || (avg && !is_integer(type));
      CHECK(kernels.combine != nullptr);
      CHECK((kernels.scale != nullptr) == multiplies);
      CHECK((kernels.scale_combine != nullptr) == multiplies);
      CHECK((kernels.divide != nullptr) == (avg && is_integer(type)));
    }
  }
}

TEST_CASE("the chosen instruction set is one that this processor has", "[kernels]") {
  const Arithmetic* chosen = arithmetic(DataType::float32, ReduceOp::sum, isa());
  REQUIRE(chosen != nullptr);
  CHECK(chosen == &arithmetic(DataType::float32, ReduceOp::sum));
  CHECK(arithmetic(DataType::float32, ReduceOp::sum, "portable") != nullptr);
  CHECK(arithmetic(DataType::float32, ReduceOp::sum, "abacus") == nullptr);
}

TEST_CASE("an average's scalar is 1/n rounded to the type", "[kernels]") {
  CHECK(avg_scalar(DataType::float64, 3) == 1.0 / 3);
  CHECK(avg_scalar(DataType::float32, 3) == static_cast<double>(1.0F / 3.0F));
  CHECK(avg_scalar(DataType::float16, 3) == 0x555p-12);
  CHECK(avg_scalar(DataType::bfloat16, 3) == 0xabp-9);
  CHECK(avg_scalar(DataType::float8e4m3, 3) == 0.34375);
  CHECK(avg_scalar(DataType::float8e5m2, 3) == 0.3125);
  CHECK(avg_scalar(DataType::int32, 3) == 1.0);
}

TEST_CASE("copy moves bytes, and none from nowhere", "[kernels]") {
  const std::array<char, 4> from{'g', 'y', 'r', 'e'};
  std::array<char, 4> to{};
  copy(to.data(), from.data(), 3);
  CHECK(to == std::array<char, 4>{'g', 'y', 'r', '\0'});
  copy(nullptr, nullptr, 0);
}

TEST_CASE("copy_away moves any number of bytes from and to any alignment, and touches nothing else") {
  std::vector<std::byte> from(9100), to(9300);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  for (const size_t bytes : std::initializer_list<size_t>{0, 1, 63, 64, 1025, 8191, 8192, 8193, 8255, 9001}) {
    for (const size_t source : std::initializer_list<size_t>{0, 1, 32, 63}) {
      for (const size_t sink : std::initializer_list<size_t>{0, 1, 8, 31, 33, 63, 64}) {
        std::fill(to.begin(), to.end(), std::byte{0xee});
        copy_away(to.data() + 64 + sink, from.data() + source, bytes);
        fence_away();
        INFO(bytes << " bytes from " << source << " to " << sink);
        CHECK(std::memcmp(to.data() + 64 + sink, from.data() + source, bytes) == 0);
        CHECK(std::all_of(to.begin(), to.begin() + static_cast<ptrdiff_t>(64 + sink), [](std::byte b) { return b == std::byte{0xee}; }));
        CHECK(std::all_of(to.begin() + static_cast<ptrdiff_t>(64 + sink + bytes), to.end(),
                          [](std::byte b) { return b == std::byte{0xee}; }));
      }
    }
  }
}
