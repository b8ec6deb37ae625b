#include "perf/sweep.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "perf/check.h"
#include "perf/sweep_buffer.h"

namespace gyre::perf {
namespace {

// A batch of messages has no schedule, and so no family.
Result<std::string> algorithm(engine::Communicator& communicator, const Case& c) {
  if (!c.benchmark->collective) return std::string("batch");
  return communicator.algorithm({*c.benchmark->collective, c.count, c.type, c.op, c.root});
}

Result<Row> measure(engine::Communicator& communicator, const SweepOptions& o, const Case& c, size_t bytes, void* input, void* output) {
  Row row{c, bytes, GYRE_TRY(algorithm(communicator, c)), {}, {}, {}};
  const Place apart = out_of_place(c, communicator.rank(), input, output);
  GYRE_TRY(check(communicator, c, apart, o.check, row.out_of_place));
  GYRE_TRY(time(communicator, c, apart, o.warmup, o.iterations, row.out_of_place));
  if (!c.benchmark->has_in_place) return row;
  row.in_place.emplace();
  const Place together = in_place(c, communicator.rank(), output);
  GYRE_TRY(check(communicator, c, together, o.check, *row.in_place));
  GYRE_TRY(time(communicator, c, together, o.warmup, o.iterations, *row.in_place));
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
          {"-n", o.iterations},
          {"-w", o.warmup},
          {"-c", o.check},
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
    const bool as_many = equal("collective") && equal("rows") && equal("-n") && equal("-w") && equal("-c");
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

Status sweep(engine::Communicator& communicator, const SweepOptions& options, const SweepEvents& events) {
  const auto sizes = GYRE_TRY(sizes_of(options));
  const auto roots = GYRE_TRY(roots_of(options, communicator.size()));
  GYRE_TRY(compare_options(communicator.bootstrap(), options));
  const SweepBuffer input = GYRE_TRY(SweepBuffer::allocate(sizes.back()));
  const SweepBuffer output = GYRE_TRY(SweepBuffer::allocate(sizes.back() + guard_bytes));
  const auto run = [&](const Case& c, size_t bytes) -> Status {
    events.on_start(bytes);
    Row row = GYRE_TRY(measure(communicator, options, c, bytes, input.data(), output.data()));
    if (events.predict) row.predicted_us = events.predict(c);
    events.on_row(row);
    return {};
  };
  for (const DataType type : options.types) {
    for (const ReduceOp op : options.ops) {
      for (const Rank root : roots) {
        for (const size_t bytes : sizes) GYRE_TRY(run(case_of(*options.benchmark, communicator.size(), bytes, type, op, root), bytes));
      }
    }
  }
  return {};
}

}  // namespace gyre::perf
