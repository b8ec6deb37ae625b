#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "perf/commands.h"

namespace gyre::perf {

int tune(const TuneCommand& command, const Config& config) {
  const std::string samples = command.file + ".samples.jsonl";
  std::error_code error;
  std::filesystem::remove(samples, error);  // measure adds to a file
  if (error) return complain({Code::system, fmt::format("{}: {}", samples, error.message())});
  for (const std::string& transport : command.transports) {
    for (const int ranks : command.ranks) {
      fmt::print("{} ranks, {}\n", ranks, transport);
      Config with = config;
      if (const Status set = with.set("GYRE_TRANSPORT", transport, "--transport"); !set) return complain(set.error());
      const int code = measure({command.sizes, ranks, transport, command.rounds, samples, command.command_line}, with);
      if (code != 0) return code;
    }
  }
  fmt::print("\n");
  if (const int code = fit({{samples}, command.file, true, command.command_line}, config); code != 0) return code;
  fmt::print("\n");
  if (const int code = regret({{samples}, command.file, "", command.command_line}, config); code != 0) return code;
  fmt::print("\nGYRE_CONSTANTS={} makes auto choose by it.\n", command.file);
  return 0;
}

}  // namespace gyre::perf
