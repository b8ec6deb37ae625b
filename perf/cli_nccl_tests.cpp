#include "perf/cli_nccl_tests.h"

#include <fmt/format.h>

#include <charconv>

#include "perf/cli_values.h"

namespace gyre::perf {
namespace {

constexpr int most_iterations = 1 << 30;

// Taken, and said to do nothing here when it is other than 0.
void add_without_effect(CLI::App* app, const std::string& names, int most, std::vector<std::string>& notes, const std::string& why) {
  const std::string letter = names.substr(0, 2);
  add_number(app, names, 0, most, fmt::format("Taken, without effect: {}", why), [=, &notes](int given) {
    if (given != 0) notes.push_back(fmt::format("{} {} has no effect: {}", letter, given, why));
  });
}

// Refused when it is more than `most`: what it asks for does not exist here. Less than that, but not 0, has no effect.
void add_absent(CLI::App* app, const std::string& names, int most, std::vector<std::string>& notes, const std::string& why) {
  app->add_option_function<std::string>(
         names,
         [=, &notes](const std::string& given) {
           const auto number = parse_number(given);
           if (!number) throw CLI::ValidationError(names, fmt::format("'{}' is not a whole number", given));
           if (*number > static_cast<uint64_t>(most)) {
             throw CLI::ValidationError(names, fmt::format("{} is refused: {}; the nearest right value is {}", given, why, most));
           }
           if (*number != 0) notes.push_back(fmt::format("{} {} has no effect: {}", names.substr(0, 2), given, why));
         },
         fmt::format("Only {}: {}", most == 0 ? "0" : fmt::format("0 to {}", most), why))
      ->type_name("NUMBER");
}

}  // namespace

void add_timing_flags(CLI::App* sub, SweepOptions& sweep) {
  Timing& timing = sweep.timing;
  const std::string group = "Timing, as in nccl-tests";
  const auto number = [&](const std::string& names, int64_t least, int64_t most, const std::string& text, auto set) {
    add_number(sub, names, least, most, text, set)->group(group);
  };
  number("-m,--agg_iters", 1, 65536, "Calls that make an iteration, one after the other; of sendrecv in one group (1)",
         [&](int n) { timing.calls = n; });
  number("-N,--run_cycles", 0, most_iterations, "Times that all sizes are run; 0: without end (1)", [&](int n) { sweep.cycles = n; });
  number("-z,--blocking", 0, 3, "Ranks meet: 1: after every call, timed; 3: after every iteration, not timed; 0, 2: they do not (0)",
         [&](int n) { timing.blocking = static_cast<Blocking>(n); });
  number("-a,--average", 0, 3, "Over ranks: 0: the time of rank 0, 1: average, 2: least, 3: most (1)",
         [&](int n) { timing.average = static_cast<Average>(n); });
  number("-I,--per_iter_timing", 0, 1, "1: also percentiles over the iterations of all ranks: p50, p90, p99, max (0)",
         [&](int n) { timing.percentiles = n != 0; });
  number("-K,--per_iter_skip", 0, most_iterations, "First iterations that -I leaves out (0)", [&](int n) { timing.skip = n; });
  number("-u,--unalign", 0, 1 << 20, "Elements by which buffers are shifted from the beginning of a page (0)",
         [&](int n) { sweep.unalign = n; });
  number("-R,--local_register", 0, 2, "1, 2: buffers of the heap that the ranks of a host share, which all of them map (0)",
         [&](int n) { sweep.local_register = n; });
}

void add_nccl_tests_flags(CLI::App* sub, SweepCommand& command) {
  add_number(sub, "-t,--nthreads", 1, 4096, "With -g: as many local ranks as their product, a process each",
             [&](int n) { command.threads = n; });
  add_number(sub, "-g,--ngpus", 1, 4096, "With -t: as many local ranks as their product, a process each", [&](int n) { command.gpus = n; });
  add_number(sub, "-T,--timeout", 0, 1 << 20, "Seconds after which a row that has not ended ends the job with an error; 0: none (0)",
             [&](int n) { command.timeout_s = n; });
  add_number(sub, "-S,--report_timestamps", 0, 1, "1: rows say when they were taken (0)", [&](int n) { command.timestamps = n != 0; });
  add_number(sub, "-M,--memory", 0, 1, "1: say how much memory ranks had at most (0)", [&](int n) { command.memory = n != 0; });
  auto& notes = command.notes;
  add_without_effect(sub, "-p,--parallel_init", 1, notes, "ranks are processes, and always start in parallel");
  add_without_effect(sub, "-y,--stream_null", 1, notes, "host memory has no streams");
  add_without_effect(sub, "-x,--cta_policy", 2, notes, "host memory has no CTAs");
  add_without_effect(sub, "-V,--device_cta_count", 128, notes, "host memory has no CTAs");
  add_without_effect(sub, "-C,--report_cputime", 1, notes, "a call ends when its result is there, so that its time is the processor's");
  add_absent(sub, "-G,--cudagraph", 0, notes, "calls on host memory cannot be captured in a CUDA graph");
  add_absent(sub, "-D,--device_implementation", 0, notes, "calls on host memory have no implementation on a device");
}

void add_seconds(CLI::App* sub, const std::string& names, std::optional<double>& value, const std::string& text) {
  const auto read = [=, &value](const std::string& given) {
    double seconds = 0;
    const char* end = given.data() + given.size();
    const auto [at, error] = std::from_chars(given.data(), end, seconds);
    if (error != std::errc() || at != end || !(seconds > 0 && seconds <= 1e9)) {
      throw CLI::ValidationError(names, fmt::format("'{}' is not a number of seconds above 0, such as 30 or 0.5", given));
    }
    value = seconds;
  };
  sub->add_option_function<std::string>(names, read, text)->type_name("SECONDS");
}

Status check_together(const SweepCommand& command) {
  const Timing& timing = command.sweep.timing;
  const auto wrong = [](std::string what) { return Error{Code::invalid_argument, std::move(what)}; };
  if (timing.skip != 0 && !timing.percentiles)
    return wrong(fmt::format("-K {}: skips iterations of -I 1, which is not given", timing.skip));
  if (timing.skip >= timing.iterations && timing.percentiles) {
    return wrong(fmt::format("-K {}: of -n {} iterations none is left; the nearest right value is {}", timing.skip, timing.iterations,
                             timing.iterations - 1));
  }
  if (!command.threads && !command.gpus) return {};
  const int threads = command.threads.value_or(1);
  const int gpus = command.gpus.value_or(1);
  const int64_t product = int64_t{threads} * gpus;
  if (product > 4096) return wrong(fmt::format("-t {} -g {}: {} ranks are more than 4096", threads, gpus, product));
  if (command.ranks && *command.ranks != product) {
    return wrong(fmt::format("-t {} -g {}: that is {} ranks, --ranks says {}", threads, gpus, product, *command.ranks));
  }
  return {};
}

}  // namespace gyre::perf
