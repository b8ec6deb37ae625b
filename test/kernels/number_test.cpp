#include "kernels/number.h"

#include <cmath>
#include <random>

#include "test/catch.h"
#include "test/kernels/slow_number.h"

using namespace gyre::kernels;
using gyre::test::SlowNumbers;

namespace {

template <class T>
const SlowNumbers& slow();
template <>
const SlowNumbers& slow<Half>() {
  return gyre::test::slow_half();
}
template <>
const SlowNumbers& slow<Bfloat16>() {
  return gyre::test::slow_bfloat16();
}
template <>
const SlowNumbers& slow<Float8e4m3>() {
  return gyre::test::slow_e4m3();
}
template <>
const SlowNumbers& slow<Float8e5m2>() {
  return gyre::test::slow_e5m2();
}

template <class T>
T of_pattern(uint32_t pattern) {
  return T{static_cast<decltype(T::bits)>(pattern)};
}
template <class T>
constexpr uint32_t pattern_count = 1U << (8 * sizeof(T));

bool same(double a, double b) { return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b)); }

template <class T>
bool rounds_right(float x) {
  return narrow<T>(x).bits == slow<T>().nearest(static_cast<double>(x));
}

}  // namespace

TEMPLATE_TEST_CASE("every pattern widens to its value", "[kernels]", Half, Bfloat16, Float8e4m3, Float8e5m2) {
  uint32_t wrong = 0;
  for (uint32_t p = 0; p < pattern_count<TestType>; ++p) {
    wrong += !same(static_cast<double>(widen(of_pattern<TestType>(p))), slow<TestType>().value(p));
  }
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("every finite pattern survives widening and narrowing", "[kernels]", Half, Bfloat16, Float8e4m3, Float8e5m2) {
  uint32_t wrong = 0;
  for (uint32_t p = 0; p < pattern_count<TestType>; ++p) {
    const float value = widen(of_pattern<TestType>(p));
    if (std::isfinite(value)) wrong += narrow<TestType>(value).bits != p;
  }
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("narrowing is right at all midpoints and beside them", "[kernels]", Half, Bfloat16, Float8e4m3, Float8e5m2) {
  uint32_t wrong = 0;
  for (uint32_t p = 0; p + 1 < pattern_count<TestType>; ++p) {
    const double lower = slow<TestType>().value(p);
    const double upper = slow<TestType>().value(p + 1);
    if (!std::isfinite(lower) || !std::isfinite(upper)) continue;
    const auto middle = static_cast<float>((lower + upper) / 2);
    for (float x : {middle, std::nextafter(middle, -INFINITY), std::nextafter(middle, INFINITY)}) wrong += !rounds_right<TestType>(x);
  }
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("narrowing is right for random and for extreme floats", "[kernels]", Half, Bfloat16, Float8e4m3, Float8e5m2) {
  std::mt19937 random(7);
  uint32_t wrong = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    const uint32_t near_one = (bits & 0x8fffffffU) | (0x30000000U + (bits & 0x1fU) * 0x00800000U);  // exponents that all types have
    wrong += !rounds_right<TestType>(float_of(i % 2 == 0 ? bits : near_one));
  }
  for (float x : {0.0F, 1e-45F, 447.9F, 448.0F, 464.0F, 464.1F, 57344.0F, 61440.0F, 65504.0F, 65519.9F, 65520.0F, 65536.0F, 3.38953139e38F,
                  3.3961775e38F, 3.40282347e38F, INFINITY, NAN}) {
    wrong += !rounds_right<TestType>(x) + !rounds_right<TestType>(-x);
  }
  CHECK(wrong == 0);
}

TEST_CASE("8-bit floats never round to infinity", "[kernels]") {
  CHECK(narrow<Float8e4m3>(INFINITY).bits == 0x7e);
  CHECK(narrow<Float8e4m3>(-1e30F).bits == 0xfe);
  CHECK(narrow<Float8e5m2>(INFINITY).bits == 0x7b);
  CHECK(narrow<Float8e5m2>(-1e30F).bits == 0xfb);
  CHECK(widen(Float8e4m3{0x7e}) == 448.0F);
  CHECK(widen(Float8e5m2{0x7b}) == 57344.0F);
}
