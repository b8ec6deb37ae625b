#include "perf/nccl_beside.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>
#include <set>

#include "base/text.h"
#include "perf/nccl_forced.h"

namespace gyre::perf {
namespace {

constexpr size_t most_of_a_reason = 300;

/// What the library says of the first call of a size class that gyre runs, and of the first that NCCL runs: plugin/nccl/wrap_comm.cpp.
struct SaidOfCall {
  uint64_t bytes = 0;
  std::string_view who, why;
};

std::optional<SaidOfCall> said_of_call(std::string_view line, Collective collective) {
  const std::string mark = fmt::format(": {} of about ", name(collective));
  constexpr std::string_view by = " bytes by ";
  const size_t at = line.find(mark);
  const size_t end = line.find(by, at);
  if (at == line.npos || end == line.npos) return {};
  const size_t number = at + mark.size();
  const auto bytes = parse_number(line.substr(number, end - number));
  if (!bytes) return {};
  const std::string_view rest = line.substr(end + by.size());
  const size_t colon = std::min(rest.find(": "), rest.size());
  return SaidOfCall{*bytes, rest.substr(0, colon), rest.substr(std::min(colon + 2, rest.size()))};
}

/// Of calls of the sizes between two powers of two the library speaks once for each of the two.
int size_class(uint64_t bytes) { return static_cast<int>(std::bit_width(bytes)); }

/// Count times element, of nccl-tests' size.
uint64_t call_bytes(Collective collective, int ranks, uint64_t size) {
  const bool of_all = collective == Collective::all_gather || collective == Collective::reduce_scatter;
  return of_all ? size / static_cast<uint64_t>(ranks) : size;
}

}  // namespace

Variables beside_variables(const std::string& library, Collective collective, bool told) {
  Variables variables = nccl_variables(nccls_own, told);
  const char* loaded = std::getenv("LD_PRELOAD");
  const bool others = loaded != nullptr && *loaded != '\0';
  variables["LD_PRELOAD"] = others ? fmt::format("{}:{}", library, loaded) : library;
  variables["GYRE_COLLECTIVES"] = name(collective);
  variables["GYRE_LOG"] = "info";
  for (const char* limits : {"GYRE_MIN_BYTES", "GYRE_MAX_BYTES"}) variables[limits] = std::nullopt;
  return variables;
}

Status gyre_ran(std::string_view log, Collective collective, int ranks, const std::map<uint64_t, double>& times) {
  std::set<int> by_gyre;
  std::string_view reason;  // why it may be that nothing is said
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find_first_of("\r\n"));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    if (line.find("NCCL runs all calls") != line.npos || (reason.empty() && line.find("LD_PRELOAD") != line.npos)) reason = line;
    const auto said = said_of_call(line, collective);
    if (!said || said->bytes == 0) continue;
    if (said->who != "gyre")
      return Error{Code::system,
                   fmt::format("NCCL ran about {} bytes in its place: {}", said->bytes, printable(said->why, most_of_a_reason))};
    by_gyre.insert(size_class(said->bytes));
  }
  for (const auto& [size, us] : times) {
    const uint64_t bytes = call_bytes(collective, ranks, size);
    if (bytes == 0 || by_gyre.contains(size_class(bytes))) continue;
    return Error{Code::system, fmt::format("gyre does not say that it ran {} bytes{}{}", size, reason.empty() ? "" : ": ",
                                           printable(reason, most_of_a_reason))};
  }
  return {};
}

}  // namespace gyre::perf
