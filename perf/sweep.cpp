#include "perf/sweep.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "perf/reference.h"

namespace gyre::perf {
namespace {

using Clock = std::chrono::steady_clock;

struct Point {
  size_t count;
  DataType type;
  ReduceOp op;
};

Status check(engine::Communicator& communicator, const Point& p, int calls, const void* input, void* output, Measured& measured) {
  for (int i = 0; i < calls; ++i) {
    if (output != input) std::memset(output, 0xff, p.count * size_of(p.type));
    fill_input(output == input ? output : const_cast<void*>(input), p.count, p.type, p.op, communicator.rank(),
               communicator.size());  // NOLINT(cppcoreguidelines-pro-type-const-cast): the sweep's own buffer
    GYRE_TRY(communicator.all_reduce(input, output, p.count, p.type, p.op));
    const size_t wrong = count_wrong(output, p.count, p.type, p.op, communicator.size());
    for (const std::string& text : GYRE_TRY(communicator.bootstrap().all_gather(std::to_string(wrong)))) {
      measured.wrong += parse_number(text).value_or(1);
    }
    measured.checked = true;
  }
  return {};
}

Status time(engine::Communicator& communicator, const Point& p, const SweepOptions& options, void* input, void* output,
            Measured& measured) {
  // Zeros stay zeros under every operation, so that no call is slowed by overflow or denormal numbers.
  std::memset(input, 0, p.count * size_of(p.type));
  std::memset(output, 0, p.count * size_of(p.type));
  GYRE_TRY(communicator.bootstrap().barrier());
  for (int i = 0; i < options.warmup; ++i) GYRE_TRY(communicator.all_reduce(input, output, p.count, p.type, p.op));
  GYRE_TRY(communicator.all_reduce(nullptr, nullptr, 0, p.type, p.op));  // start together
  const auto start = Clock::now();
  for (int i = 0; i < options.iterations; ++i) GYRE_TRY(communicator.all_reduce(input, output, p.count, p.type, p.op));
  const std::chrono::duration<double, std::micro> elapsed = Clock::now() - start;
  double sum_us = 0;
  for (const std::string& text : GYRE_TRY(communicator.bootstrap().all_gather(fmt::format("{}", elapsed.count()))))
    sum_us += std::stod(text);
  const int ranks = communicator.size();
  measured.time_us = sum_us / ranks / options.iterations;
  measured.algbw = static_cast<double>(p.count * size_of(p.type)) / measured.time_us / 1e3;
  measured.busbw = measured.algbw * 2 * (ranks - 1) / ranks;
  return {};
}

}  // namespace

Result<std::vector<size_t>> sizes_of(const SweepOptions& options) {
  if (options.min_bytes > options.max_bytes) {
    return Error{Code::invalid_argument, fmt::format("-b {} is larger than -e {}: no sizes to run", options.min_bytes, options.max_bytes)};
  }
  if (options.step_bytes == 0 && options.step_factor < 2) {
    return Error{Code::invalid_argument, fmt::format("-f {}: the step factor must be 2 or more", options.step_factor)};
  }
  constexpr size_t most = 100000;
  std::vector<size_t> sizes;
  for (size_t bytes = options.min_bytes; bytes <= options.max_bytes;) {
    sizes.push_back(bytes);
    if (sizes.size() > most) return Error{Code::invalid_argument, fmt::format("-i {}: more than {} sizes", options.step_bytes, most)};
    const size_t step = options.step_bytes != 0 ? options.step_bytes : std::max<size_t>(1, bytes * (options.step_factor - 1));
    if (step > options.max_bytes - bytes) break;
    bytes += step;
  }
  return sizes;
}

// Calls that differ are the engine's to find; a rank that makes no call at all would be waited for for ever.
Status compare_options(transport::Bootstrap& bootstrap, const SweepOptions& o) {
  const size_t rows = GYRE_TRY(sizes_of(o)).size() * o.types.size() * o.ops.size();
  const nlohmann::json mine{
      {"rows", rows},       {"-b", o.min_bytes}, {"-e", o.max_bytes}, {"-f", o.step_factor},     {"-i", o.step_bytes},
      {"-n", o.iterations}, {"-w", o.warmup},    {"-c", o.check},     {"types", o.types.size()}, {"operations", o.ops.size()}};
  const auto all = GYRE_TRY(bootstrap.all_gather(mine.dump()));
  const auto first = nlohmann::json::parse(all[0], nullptr, false);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const auto other = nlohmann::json::parse(all[rank], nullptr, false);
    if (!first.is_object() || !other.is_object())
      return Error{Code::internal, fmt::format("rank {} sent options that cannot be read", rank)};
    const bool as_many =
        other["rows"] == first["rows"] && other["-n"] == first["-n"] && other["-w"] == first["-w"] && other["-c"] == first["-c"];
    if (as_many) continue;
    std::vector<std::string> differences;
    for (const auto& [key, value] : first.items()) {
      if (other[key] != value)
        differences.push_back(fmt::format("rank {} has {} {}, rank 0 has {}", rank, key, other[key].dump(), value.dump()));
    }
    return Error{Code::invalid_usage, fmt::format("calls differ: {}", fmt::join(differences, "; "))};
  }
  return {};
}

Result<SweepBuffer> SweepBuffer::allocate(size_t bytes) {
  const size_t mapped = std::max<size_t>(bytes, 1);
  void* data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return Error{Code::system, fmt::format("cannot allocate a buffer of {} bytes: {}", bytes, std::strerror(errno))};
  return SweepBuffer(data, mapped);
}

SweepBuffer::~SweepBuffer() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

Result<Row> measure(engine::Communicator& communicator, const SweepOptions& options, size_t bytes, DataType type, ReduceOp op, void* input,
                    void* output) {
  const Point point{bytes / size_of(type), type, op};
  const engine::Plan* plan = GYRE_TRY(communicator.plan({Collective::all_reduce, point.count, type, op}));
  Row row{point.count * size_of(type), point.count, type, op, plan->schedule().family, {}, {}};
  GYRE_TRY(check(communicator, point, options.check, input, output, row.out_of_place));
  GYRE_TRY(time(communicator, point, options, input, output, row.out_of_place));
  GYRE_TRY(check(communicator, point, options.check, output, output, row.in_place));
  GYRE_TRY(time(communicator, point, options, output, output, row.in_place));
  return row;
}

}  // namespace gyre::perf
