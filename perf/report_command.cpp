#include <fmt/format.h>

#include <cerrno>
#include <fstream>

#include "base/text.h"
#include "perf/commands.h"
#include "perf/page.h"
#include "perf/picture.h"

namespace gyre::perf {
namespace {

Status run(const ReportCommand& command) {
  const bool page = command.output.ends_with(".html");
  if (!page && !command.output.ends_with(".svg")) {
    return Error{Code::invalid_argument, fmt::format("--output {}: must end with .html or .svg", command.output)};
  }
  std::vector<Results> files;
  files.reserve(command.files.size());
  for (const std::string& path : command.files) files.push_back(GYRE_TRY(read_results(path)));
  const topo::Constants constants = GYRE_TRY(topo::constants_of(command.constants));
  const auto sections = GYRE_TRY(sections_of(files, constants));
  std::ofstream file(command.output);
  file << (page ? page_of(sections) : picture_of(sections));
  file.close();
  if (!file) return Error{Code::system, fmt::format("--output {}: {}", command.output, errno_text(errno))};
  for (const Section& section : sections) {
    fmt::print("{}: {}\n", command.output, section.title);
    for (const std::string& sentence : section.sentences) fmt::print("    {}\n", sentence);
  }
  return {};
}

}  // namespace

int report(const ReportCommand& command, const Config&) {
  const Status status = run(command);
  return status ? 0 : complain(status.error());
}

}  // namespace gyre::perf
