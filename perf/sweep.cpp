#include "perf/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>

#include "perf/check.h"
#include "perf/sweep_buffer.h"

namespace gyre::perf {
namespace {

constexpr size_t widest_type = 8;  // bytes of its elements

// A batch of messages has no schedule, and so no family.
Result<std::string> algorithm(engine::Communicator& communicator, const Case& c, engine::BufferKind kind) {
  if (!c.benchmark->collective) return std::string("batch");
  return communicator.algorithm({*c.benchmark->collective, c.count, c.type, c.op, c.root}, kind);
}

// What a communicator is called with, page-aligned but for the offset.
struct Memory {
  SweepBuffer input;
  SweepBuffer output;
};

Result<std::vector<Memory>> allocate(const SweepOptions& o, size_t most_bytes) {
  const size_t offset = static_cast<size_t>(o.unalign) * widest_type;
  std::vector<Memory> all;
  all.reserve(static_cast<size_t>(o.communicators));
  for (int i = 0; i < o.communicators; ++i) {
    SweepBuffer input = GYRE_TRY(SweepBuffer::allocate(most_bytes + offset, o.buffers()));
    all.push_back({std::move(input), GYRE_TRY(SweepBuffer::allocate(most_bytes + offset + guard_bytes, o.buffers()))});
  }
  return all;
}

Status measure_way(const SweepOptions& o, const Case& c, const std::vector<Lane>& lanes, TimeLimit& limit, Measured& measured) {
  GYRE_TRY(check(lanes, c, o.check, limit, measured));
  return time(lanes, c, o.timing, limit, measured);
}

Result<Row> measure(Communicators communicators, const SweepOptions& o, const Case& c, const std::vector<Memory>& memory,
                    TimeLimit& limit) {
  Row row;
  row.call = c;
  row.algorithm = GYRE_TRY(algorithm(*communicators.front(), c, o.buffers()));
  std::vector<Lane> apart;
  std::vector<Lane> together;
  const auto offset = static_cast<size_t>(o.unalign) * size_of(c.type);
  const auto shifted = [&](const SweepBuffer& buffer) { return static_cast<std::byte*>(buffer.data()) + offset; };
  for (size_t i = 0; i < communicators.size(); ++i) {
    engine::Communicator* communicator = communicators[i].get();
    const Rank rank = communicator->rank();
    apart.push_back({communicator, out_of_place(c, rank, shifted(memory[i].input), shifted(memory[i].output))});
    together.push_back({communicator, in_place(c, rank, shifted(memory[i].output))});
  }
  GYRE_TRY(measure_way(o, c, apart, limit, row.out_of_place));
  if (c.benchmark->has_in_place && !limit.reached()) GYRE_TRY(measure_way(o, c, together, limit, row.in_place.emplace()));
  const auto all = static_cast<uint64_t>(o.timing.iterations);
  row.cut = row.out_of_place.iterations < all || (c.benchmark->has_in_place && (!row.in_place || row.in_place->iterations < all));
  return row;
}

}  // namespace

std::optional<double> Row::prediction_error() const {
  if (!predicted_us || out_of_place.time_us <= 0) return std::nullopt;
  return *predicted_us / out_of_place.time_us - 1;
}

Result<std::vector<size_t>> sizes_of(const SweepOptions& options) {
  if (options.min_bytes > options.max_bytes) {
    return Error{Code::invalid_argument, fmt::format("-b {} is larger than -e {}: no sizes to run", options.min_bytes, options.max_bytes)};
  }
  if (options.step_bytes == 0 && options.step_factor < 2) {
    return Error{Code::invalid_argument, fmt::format("-f {}: the step factor must be 2 or more", options.step_factor)};
  }
  if (options.step_factor > size_t{1} << 43) {
    return Error{Code::invalid_argument, fmt::format("-f {}: the step factor is too large", options.step_factor)};
  }
  constexpr size_t most = 100000;
  std::vector<size_t> sizes;
  for (size_t bytes = options.min_bytes; bytes <= options.max_bytes;) {
    sizes.push_back(bytes);
    if (sizes.size() > most) return Error{Code::invalid_argument, fmt::format("-i {}: more than {} sizes", options.step_bytes, most)};
    if (options.step_bytes == 0 && bytes > options.max_bytes / options.step_factor) break;
    const size_t step = options.step_bytes != 0 ? options.step_bytes : std::max<size_t>(1, bytes * (options.step_factor - 1));
    if (step > options.max_bytes - bytes) break;
    bytes += step;
  }
  return sizes;
}

Result<std::vector<Rank>> roots_of(const SweepOptions& options, int ranks) {
  if (!options.root) {
    std::vector<Rank> all(static_cast<size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  if (*options.root >= 0 && *options.root < ranks) return std::vector<Rank>{*options.root};
  return Error{Code::invalid_argument,
               fmt::format("-r {}: no such rank; there {} {}, from 0", *options.root, ranks == 1 ? "is" : "are", ranks)};
}

Result<size_t> rows_of(const SweepOptions& options, int ranks) {
  const size_t sizes = GYRE_TRY(sizes_of(options)).size();
  return sizes * options.types.size() * options.ops.size() * GYRE_TRY(roots_of(options, ranks)).size();
}

namespace {

struct Sized {
  size_t bytes;  // as asked for
  Case call;
};

// The rows of a cycle.
Result<std::vector<Sized>> cases_of(const SweepOptions& options, int ranks) {
  const auto sizes = GYRE_TRY(sizes_of(options));
  const auto roots = GYRE_TRY(roots_of(options, ranks));
  std::vector<Sized> all;
  for (const DataType type : options.types) {
    for (const ReduceOp op : options.ops) {
      for (const Rank root : roots) {
        for (const size_t bytes : sizes) all.push_back({bytes, case_of(*options.benchmark, ranks, bytes, type, op, root)});
      }
    }
  }
  return all;
}

template <class T>
std::string names_of(const std::vector<T>& values) {
  std::vector<std::string_view> names;
  names.reserve(values.size());
  for (const T value : values) names.push_back(name(value));
  return fmt::format("{}", fmt::join(names, ","));
}

// What decides which calls a rank makes, by flag.
nlohmann::json calls_of(const SweepOptions& o, size_t rows) {
  return {{"collective", o.benchmark->name},
          {"rows", rows},
          {"-b", o.min_bytes},
          {"-e", o.max_bytes},
          {"-f", o.step_factor},
          {"-i", o.step_bytes},
          {"-n", o.timing.iterations},
          {"-w", o.timing.warmup},
          {"-c", o.check},
          {"-m", o.timing.calls},
          {"-N", o.cycles},
          {"-z", static_cast<int>(o.timing.blocking)},
          {"-I", static_cast<int>(o.timing.percentiles)},
          {"--communicators", o.communicators},
          {"--time-limit", o.limit_seconds ? fmt::format("{}", *o.limit_seconds) : "none"},
          {"-d", names_of(o.types)},
          {"-o", names_of(o.ops)},
          {"-r", o.root ? std::to_string(*o.root) : "all"}};
}

std::string plain(const nlohmann::json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

}  // namespace

// Calls that differ are the engine's to find, where every rank hears from others in each call. But a rank that makes no call at all would
// be waited for for ever; and one that only sends has its call behind it when the others find theirs to be another.
Status compare_options(transport::Bootstrap& bootstrap, const SweepOptions& o) {
  const size_t rows = GYRE_TRY(rows_of(o, bootstrap.size()));
  const auto all = GYRE_TRY(bootstrap.all_gather(calls_of(o, rows).dump()));
  const auto first = nlohmann::json::parse(all[0], nullptr, false);
  const bool one_way = o.benchmark->rooted() || !o.benchmark->collective;
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const auto other = nlohmann::json::parse(all[rank], nullptr, false);
    if (!first.is_object() || !other.is_object())
      return Error{Code::internal, fmt::format("rank {} sent options that cannot be read", rank)};
    const auto equal = [&](const char* key) { return other[key] == first[key]; };
    constexpr std::array number_of_calls{"collective", "rows", "-n", "-w", "-c", "-m", "-N", "-z", "-I", "--communicators", "--time-limit"};
    const bool as_many = std::all_of(number_of_calls.begin(), number_of_calls.end(), equal);
    if (one_way ? other == first : as_many) continue;
    std::vector<std::string> differences;
    for (const auto& [key, value] : first.items()) {
      if (other[key] != value)
        differences.push_back(fmt::format("rank {} has {} {}, rank 0 has {}", rank, key, plain(other[key]), plain(value)));
    }
    return Error{Code::invalid_usage, fmt::format("calls differ: {}", fmt::join(differences, "; "))};
  }
  return {};
}

Result<uint64_t> sweep(Communicators communicators, const SweepOptions& options, const SweepEvents& events) {
  engine::Communicator& first = *communicators.front();
  const auto cases = GYRE_TRY(cases_of(options, first.size()));
  GYRE_TRY(compare_options(first.bootstrap(), options));
  const auto sizes = GYRE_TRY(sizes_of(options));
  const auto memory = GYRE_TRY(allocate(options, sizes.back()));
  TimeLimit limit(options.limit_seconds);
  uint64_t rows = 0;
  for (uint64_t cycle = 0; options.cycles == 0 || cycle < static_cast<uint64_t>(options.cycles); ++cycle) {
    for (const auto& [bytes, c] : cases) {
      if (!GYRE_TRY(limit.goes_on(first.bootstrap()))) return rows;
      GYRE_TRY(events.on_start(bytes));
      Row row = GYRE_TRY(measure(communicators, options, c, memory, limit));
      row.asked_bytes = bytes;
      row.cycle = cycle;
      if (events.predict) row.predicted_us = events.predict(c);
      GYRE_TRY(events.on_row(row));
      ++rows;
    }
  }
  return rows;
}

}  // namespace gyre::perf
