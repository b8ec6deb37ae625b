#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "perf/commands.h"
#include "perf/profile.h"
#include "transport/launch.h"
#include "transport/transport.h"

namespace gyre::perf {

int tune(const TuneCommand& command, const Config& config) {
  const auto launched = transport::rendezvous_from_environment(transport::Environment::of_process());
  if (!launched) return complain(launched.error());
  if (*launched && (*launched)->size > 1) {
    return complain({Code::invalid_argument,
                     fmt::format("tune is for one host and starts its own ranks, and the launcher started {}; what goes between hosts is "
                                 "measured by `gyre-perf measure`, and `gyre-perf fit --for-this-machine` takes the samples of both",
                                 (*launched)->size)});
  }
  const std::string samples = command.file + ".samples.jsonl";
  std::error_code error;
  if (const auto sizes = sizes_of(command.sizes); !sizes) return complain(sizes.error());
  if (command.file.empty() || std::filesystem::is_directory(command.file, error))
    return complain({Code::invalid_argument, fmt::format("--output {}: is no file", command.file)});
  for (const std::string& name : command.transports) {  // before minutes go into the others
    if (name == "verbs" && transport::devices(name).empty())
      return complain({Code::invalid_argument, fmt::format("--transport verbs: {}", transport::why_not(name, name))});
  }
  if (const auto before = read_profile(command.file); !before) return complain(before.error());   // fit keeps a part of it
  if (std::filesystem::is_regular_file(samples, error)) std::filesystem::remove(samples, error);  // measure adds to a file
  if (error && error != std::errc::no_such_file_or_directory)
    return complain({Code::system, fmt::format("{}: {}", samples, error.message())});
  Config with = config;
  with.constants = Config().constants;  // those of before may be another machine's
  for (const std::string& transport : command.transports) {
    for (const int ranks : command.ranks) {
      fmt::print("{} ranks, {}\n", ranks, transport);
      std::fflush(stdout);  // or ranks would print it, too
      const int code =
          measure_here({command.sizes, ranks, transport, command.collectives, command.rounds, samples, command.command_line}, with);
      if (code != 0) return code;
    }
  }
  fmt::print("\n");
  if (const int code = fit({{samples}, command.file, true, command.command_line}, config); code != 0) return code;
  fmt::print("\n");
  if (const int code = regret({{samples}, command.file, "", command.command_line}, config); code != 0) return code;
  fmt::print(
      "\nWith GYRE_CONSTANTS={0} auto chooses by it among what goes by messages.\n"
      "What NCCL's tuner chooses by (GYRE_TUNER_FILE) is added by `gyre-perf tune_nccl --profile {0} ...`, measured with your nccl-tests,\n"
      "or by `gyre-perf crossovers --machine M --nodes N --profile {0}`, predicted.\n",
      command.file);
  return 0;
}

}  // namespace gyre::perf
