#include "perf/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace gyre::perf {
namespace {

using nlohmann::json;

// What makes two points the same call. Which algorithm a sweep took is part of the answer, of samples it is part of the question.
using Call = std::tuple<const Benchmark*, int, std::string, std::string, std::string, int, size_t, bool, std::string>;
Call call_of(const Point& p, bool samples) {
  return {p.benchmark, p.ranks,    samples ? p.joined_by() : "",     p.type, p.redop, p.root,
          p.bytes,     p.in_place, samples ? p.algorithm_text() : ""};
}

// Every algorithm that a sweep has taken for a call is a point; together they are the call's.
std::map<Call, std::vector<size_t>> calls_of(const Results& results) {
  std::map<Call, std::vector<size_t>> calls;
  for (size_t i = 0; i < results.points.size(); ++i) calls[call_of(results.points[i], results.samples)].push_back(i);
  return calls;
}

std::string plain_text(const json& value) { return value.is_null() ? "none" : value.is_string() ? value.get<std::string>() : value.dump(); }

// Differences of two values by name, one level down where both are objects. An option that one does not name was not set; of all else older
// files do not say everything.
void list_differences(const std::string& key, const json& a, const json& b, std::vector<std::string>& out) {
  if (a == b) return;
  if (a.is_object() && b.is_object()) {
    json either = a;
    either.update(b);
    for (const auto& [name, value] : either.items()) {
      const bool comparable = key == "config" || (a.contains(name) && b.contains(name));
      if (comparable) list_differences(fmt::format("{}.{}", key, name), a.value(name, json()), b.value(name, json()), out);
    }
    return;
  }
  out.push_back(fmt::format("{}: {} and {}", key, plain_text(a), plain_text(b)));
}

json at(const json& object, const json::json_pointer& path) { return object.contains(path) ? object.at(path) : json(); }

// What a file says under a key; of options, what files said nothing of before there was a choice.
json said(const Results& results, const char* key) {
  json value = results.about.value(key, json());
  if (value.is_object() && std::string_view(key) == "options") value.emplace("local_register", 0);
  return value;
}

// What makes times mean something else.
std::vector<std::string> forbidding(const Results& a, const Results& b) {
  std::vector<std::string> all;
  if (a.samples != b.samples) {
    const auto kind = [](const Results& r) { return r.samples ? "samples of every algorithm" : "a sweep"; };
    all.push_back(fmt::format("kind: {} and {}", kind(a), kind(b)));
    return all;
  }
  if (a.samples) return all;
  if (&a.benchmark() != &b.benchmark()) all.push_back(fmt::format("collective: {} and {}", a.benchmark().name, b.benchmark().name));
  if (a.ranks() != b.ranks()) all.push_back(fmt::format("ranks: {} and {}", a.ranks(), b.ranks()));
  for (const char* option : {"blocking", "average"}) {
    const json::json_pointer path(std::string("/options/") + option);
    const json one = at(a.about, path);
    const json other = at(b.about, path);
    if (!one.is_null() && !other.is_null() && one != other) all.push_back(fmt::format("{}: {} and {}", option, one.dump(), other.dump()));
  }
  return all;
}

Paired pair(const Results& a, const Results& b, const std::vector<size_t>& in_a, const std::vector<size_t>& in_b) {
  const auto together = [](const Results& results, const std::vector<size_t>& points) {
    Point all = results.points[points.front()];
    for (size_t i = 1; i < points.size(); ++i) {
      const auto& us = results.points[points[i]].us;
      all.us.insert(all.us.end(), us.begin(), us.end());
    }
    return all;
  };
  const Point before = together(a, in_a);
  const Point after = together(b, in_b);
  return {in_a.front(),
          in_b.front(),
          before.median_us(),
          after.median_us(),
          before.median_us() / after.median_us(),
          before.least_us() / after.most_us(),
          before.most_us() / after.least_us(),
          before.us.size() > 1 || after.us.size() > 1};
}

}  // namespace

double geometric_mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

Result<Comparison> compare(const Results& before, const Results& after) {
  if (const auto forbidden = forbidding(before, after); !forbidden.empty()) {
    return Error{Code::invalid_argument,
                 fmt::format("{} and {} cannot be compared; they differ in {}", before.path, after.path, fmt::join(forbidden, "; "))};
  }
  const auto calls = calls_of(before);
  const auto others = calls_of(after);
  Comparison out;
  for (const auto& [call, points] : calls) {
    const auto other = others.find(call);
    if (other != others.end()) out.pairs.push_back(pair(before, after, points, other->second));
  }
  out.only_before = calls.size() - out.pairs.size();
  out.only_after = others.size() - out.pairs.size();
  if (out.pairs.empty()) {
    return Error{Code::invalid_argument, fmt::format("{} and {} cannot be compared: no {} is in both", before.path, after.path,
                                                     before.samples ? "collective, algorithm, number of ranks, transport and size"
                                                                    : "size, type, operation and root")};
  }
  std::sort(out.pairs.begin(), out.pairs.end(), [](const Paired& a, const Paired& b) { return a.before < b.before; });
  for (const char* key : {"gyre", "commit", "machine", "versions", "config", "transports", "algorithm", "options"}) {
    const json one = said(before, key);
    const json other = said(after, key);
    if (!one.is_null() && !other.is_null()) list_differences(key, one, other, out.differences);
  }
  return out;
}

}  // namespace gyre::perf
