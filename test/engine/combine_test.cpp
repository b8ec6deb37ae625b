#include "engine/combine.h"

#include <cstring>
#include <random>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::engine;

namespace {

using Bytes = std::vector<std::byte>;

/// Small values of any type: bytes for integers, else patterns without NaN and infinity.
Bytes random_elements(std::mt19937& random, DataType type, size_t count) {
  Bytes bytes(count * size_of(type));
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  if (is_integer(type)) return bytes;
  const size_t size = size_of(type);
  for (size_t i = 0; i < count; ++i) bytes[(i + 1) * size - 1] &= std::byte{0xbf};  // the exponent's highest bit: magnitudes below 2
  return bytes;
}

struct Case {
  DataType type;
  ReduceOp op;
  int ranks;
  size_t count;
  schedule::Fact fact;
  size_t own;  ///< which source is this rank's part
};

/// The same reduction, one operation of the plain kernels after the other over whole arrays.
Bytes plainly(const Case& c, std::vector<Bytes> sources) {
  const kernels::Arithmetic& kernel = *kernels::arithmetic(c.type, c.op, "portable");
  const kernels::Factor scalar{kernels::avg_scalar(c.type, c.ranks), 1};
  const bool scales = kernel.scale != nullptr;
  const auto scaled = [&](Bytes x) {
    kernel.scale(x.data(), x.data(), c.count, scalar);
    return x;
  };
  if (sources.size() == 1 && scales && c.own == 0) return scaled(sources[0]);
  Bytes sum = sources[0];
  for (size_t i = 1; i < sources.size(); ++i) {
    const bool left = i == 1 && c.own == 0;
    const bool right = c.own == i;
    if (!scales || !(left || right)) {
      kernel.combine(sum.data(), sum.data(), sources[i].data(), c.count);
    } else if (c.fact.replicated) {
      if (left) sum = scaled(sum);
      if (right) sources[i] = scaled(sources[i]);
      kernel.combine(sum.data(), sum.data(), sources[i].data(), c.count);
    } else {
      const Bytes own = left ? sum : sources[i];
      const Bytes other = left ? sources[i] : sum;
      kernel.scale_combine(sum.data(), own.data(), other.data(), c.count, scalar);
    }
  }
  if (c.fact.complete && kernel.divide != nullptr) kernel.divide(sum.data(), c.count, static_cast<uint64_t>(c.ranks));
  return sum;
}

/// `aliased`: sink `aliased_sink` is the memory of that source; none: sources.size(). Returns how many sinks do not hold the result.
size_t wrong_sinks(const Case& c, std::vector<Bytes> sources, size_t sinks, size_t aliased, size_t aliased_sink) {
  const Bytes expected = plainly(c, sources);
  std::vector<Bytes> memory(sinks, Bytes(c.count * size_of(c.type), std::byte{0xee}));
  std::vector<Source> from;
  std::vector<Sink> to;  // the last ones away
  for (size_t i = 0; i < sources.size(); ++i) from.push_back({sources[i].data(), i == c.own});
  for (size_t i = 0; i < sinks; ++i)
    to.push_back({i == aliased_sink && aliased < sources.size() ? sources[aliased].data() : memory[i].data(), c.count % 2 == 0 || i > 1});
  const auto combine = std::make_unique<Combine>();
  combine->bind(c.type, c.op, c.ranks, 0, false);
  (*combine)(from, to, c.count, c.fact);
  size_t wrong = 0;
  for (const Sink& sink : to) wrong += c.count != 0 && std::memcmp(sink.data, expected.data(), expected.size()) != 0 ? 1 : 0;
  return wrong;
}

}  // namespace

TEST_CASE("any number of sources is combined into any number of sinks, around the size of a block") {
  std::mt19937 random(1);
  using enum DataType;
  for (const auto& [type, op] : {std::pair{int32, ReduceOp::sum}, std::pair{float32, ReduceOp::avg}, std::pair{uint8, ReduceOp::avg}}) {
    const size_t block = 4096 / size_of(type);
    for (const size_t count : {size_t{0}, size_t{1}, block - 1, block, block + 1, 2 * block + 3}) {
      for (size_t sources = 1; sources <= 5; ++sources) {
        for (size_t sinks = 1; sinks <= 3; ++sinks) {
          for (const bool replicated : {false, true}) {
            const Case c{type, op, 5, count, {true, replicated}, sources - 1};
            std::vector<Bytes> inputs;
            for (size_t i = 0; i < sources; ++i) inputs.push_back(random_elements(random, type, count));
            INFO(name(type) << " " << name(op) << ", " << count << " elements, " << sources << " sources, " << sinks << " sinks");
            CHECK(wrong_sinks(c, inputs, sinks, sources, 0) == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("every type and operation, with any source as the rank's own part") {
  std::mt19937 random(2);
  for (const DataType type : all_data_types()) {
    for (const ReduceOp op : all_reduce_ops()) {
      for (size_t sources = 1; sources <= 4; ++sources) {
        for (size_t own = 0; own <= sources; ++own) {  // sources: none of them
          for (const bool replicated : {false, true}) {
            const Case c{type, op, 7, 1000, {(own & 1) != 0, replicated}, own};
            std::vector<Bytes> inputs;
            for (size_t i = 0; i < sources; ++i) inputs.push_back(random_elements(random, type, c.count));
            INFO(name(type) << " " << name(op) << ", " << sources << " sources, own " << own << (replicated ? ", replicated" : ""));
            CHECK(wrong_sinks(c, inputs, 2, sources, 0) == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("a sink may be any of the sources") {
  std::mt19937 random(3);
  using enum DataType;
  for (const auto& [type, op] : {std::pair{int64, ReduceOp::sum}, std::pair{float16, ReduceOp::avg}, std::pair{float32, ReduceOp::max}}) {
    for (size_t sources = 1; sources <= 5; ++sources) {
      for (size_t sinks = 1; sinks <= 3; ++sinks) {
        for (size_t aliased = 0; aliased < sources; ++aliased) {
          for (size_t aliased_sink = 0; aliased_sink < sinks; ++aliased_sink) {
            for (const bool replicated : {false, true}) {
              const Case c{type, op, 3, 5000, {true, replicated}, aliased};
              std::vector<Bytes> inputs;
              for (size_t i = 0; i < sources; ++i) inputs.push_back(random_elements(random, type, c.count));
              INFO(name(type) << " " << name(op) << ", " << sources << " sources, sink " << aliased_sink << " of " << sinks << " is source "
                              << aliased);
              CHECK(wrong_sinks(c, inputs, sinks, aliased, aliased_sink) == 0);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("only averages of floats multiply, only averages of integers divide") {
  for (const DataType type : all_data_types()) {
    for (const ReduceOp op : all_reduce_ops()) {
      const auto combine = std::make_unique<Combine>();
      combine->bind(type, op, 3, 0, false);
      CHECK(combine->scales() == (op == ReduceOp::avg && !is_integer(type)));
    }
  }
}

TEST_CASE("an average of integers is divided once, where it is complete") {
  const std::array<int32_t, 2> a{7, -7};
  const std::array<int32_t, 2> b{4, -4};
  for (const bool complete : {false, true}) {
    std::array<int32_t, 2> out{};
    const std::array<Source, 2> sources{Source{reinterpret_cast<const std::byte*>(a.data()), true},
                                        Source{reinterpret_cast<const std::byte*>(b.data()), false}};
    const std::array<Sink, 1> sinks{{{reinterpret_cast<std::byte*>(out.data()), false}}};
    const auto combine = std::make_unique<Combine>();
    combine->bind(DataType::int32, ReduceOp::avg, 2, 0, false);
    (*combine)(sources, sinks, 2, {complete, false});
    CHECK(out == (complete ? std::array<int32_t, 2>{5, -5} : std::array<int32_t, 2>{11, -11}));
  }
}

TEST_CASE("all ranks' inputs are reduced to any number of sinks, an input among them") {
  std::mt19937 random(5);
  for (const DataType type : all_data_types()) {
    for (const ReduceOp op : all_reduce_ops()) {
      for (const int ranks : {2, 3, 5}) {
        const size_t count = 5000 / size_of(type) + 3;  // more than a block
        std::vector<Bytes> inputs;
        for (int r = 0; r < ranks; ++r) inputs.push_back(random_elements(random, type, count));
        // As ranks would that pass sums on: the first multiplies its part, each other adds its own.
        Bytes expected = plainly({type, op, ranks, count, {false, false}, 0}, {inputs[0]});
        for (size_t r = 1; r < inputs.size(); ++r) {
          expected = plainly({type, op, ranks, count, {r + 1 == inputs.size(), false}, 1}, {expected, inputs[r]});
        }
        for (size_t sinks = 1; sinks <= 3; ++sinks) {
          std::vector<Bytes> memory = inputs;
          memory.resize(inputs.size() + 2, Bytes(count * size_of(type)));
          std::vector<const std::byte*> from;
          for (int r = 0; r < ranks; ++r) from.push_back(memory[static_cast<size_t>(r)].data());
          std::vector<std::byte*> to;
          for (size_t i = 0; i < sinks; ++i) to.push_back(memory[inputs.size() - 1 + i].data());  // the last input, and two others
          Combine combine;
          combine.bind(type, op, ranks, 0, false);
          combine.whole(from, to, count);
          INFO(name(type) << " " << name(op) << ", " << ranks << " ranks, " << sinks << " sinks");
          for (const std::byte* sink : to) CHECK(std::memcmp(sink, expected.data(), expected.size()) == 0);
        }
      }
    }
  }
}
