#include "perf/report_json.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>

#include "base/text.h"
#include "perf/about_run.h"
#include "perf/nccl_tests_environment.h"

namespace gyre::perf {
namespace {

nlohmann::json to_json(const Measured& m) {
  nlohmann::json out{{"time_us", m.time_us}, {"algbw", m.algbw}, {"busbw", m.busbw}};
  out["wrong"] = m.checked ? nlohmann::json(m.wrong) : nlohmann::json();
  out["iterations"] = m.iterations;
  if (m.percentiles) {
    const Percentiles& p = *m.percentiles;
    out["percentiles"] = {{"iterations", p.iterations}, {"min_us", p.min_us}, {"p50_us", p.p50_us},
                          {"p90_us", p.p90_us},         {"p99_us", p.p99_us}, {"max_us", p.max_us}};
  }
  return out;
}

nlohmann::json to_json(const Row& row) {
  const Case& c = row.call;
  nlohmann::json out{{"bytes", c.bytes()}, {"count", c.count}, {"type", name(c.type)}, {"algorithm", row.algorithm}};
  out["redop"] = c.benchmark->reduces() ? nlohmann::json(name(c.op)) : nlohmann::json();
  out["root"] = c.benchmark->rooted() ? nlohmann::json(c.root) : nlohmann::json();
  out["out_of_place"] = to_json(row.out_of_place);
  out["in_place"] = row.in_place ? to_json(*row.in_place) : nlohmann::json();
  out["cycle"] = row.cycle;
  if (row.cut) out["cut"] = "time limit";
  if (row.predicted_us) out["predicted_us"] = *row.predicted_us;
  if (const auto error = row.prediction_error()) out["prediction_error"] = *error;
  return out;
}

// What changes what is measured, whatever the sizes.
nlohmann::json to_json(const SweepOptions& o) {
  const Timing& t = o.timing;
  return {{"iterations", t.iterations},
          {"warmup", t.warmup},
          {"calls_per_iteration", t.calls},
          {"blocking", static_cast<int>(t.blocking)},
          {"average", static_cast<int>(t.average)},
          {"percentiles_skip", t.skip},
          {"unalign", o.unalign},
          {"local_register", o.local_register},
          {"communicators", o.communicators},
          {"cycles", o.cycles},
          {"time_limit_s", o.limit_seconds ? nlohmann::json(*o.limit_seconds) : nlohmann::json()}};
}

}  // namespace

Result<JsonLines> JsonLines::open(const std::string& path, const RunFacts& facts, const SweepOptions& options) {
  nlohmann::json head = about_run(facts.command, facts.config);
  head["collective"] = options.benchmark->name;
  head["ranks"] = facts.ranks;
  head["transports"] = facts.transports;
  head["algorithm"] = facts.algorithm;
  head["options"] = to_json(options);
  for (const auto& [color, ranks] : facts.groups) head["groups"].push_back({{"color", color}, {"ranks", ranks}});
  JsonLines lines(path);
  GYRE_TRY(lines.put(head));
  return lines;
}

Status JsonLines::put(const nlohmann::json& line) {
  file_ << line.dump() << '\n' << std::flush;
  if (!file_) return Error{Code::system, fmt::format("--json {}: {}", path_, errno_text(errno))};
  return {};
}

Status JsonLines::row(const Row& row) { return put(to_json(row)); }

Status JsonLines::end(const SweepEnd& end) {
  nlohmann::json out{{"rows", end.totals.rows},
                     {"wrong", end.totals.checked ? nlohmann::json(end.totals.wrong) : nlohmann::json()},
                     {"average_busbw", end.totals.average_busbw()},
                     {"seconds", end.seconds},
                     {"ended_by", end.limited ? "time limit" : "last row"}};
  if (end.wanted_busbw) {
    out["wanted_busbw"] = *end.wanted_busbw;
    out["busbw_ok"] = is_enough(end.totals.average_busbw(), *end.wanted_busbw);
  }
  return put({{"end", out}});
}

}  // namespace gyre::perf
