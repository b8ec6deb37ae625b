// The transports that tests of the engine run over: those that were built in and are there, or the one that TEST_BACKEND names. UCX only by
// its name: the tests "engine over ucx" run it over each of its own transports.
#pragma once
#include <cstdlib>
#include <future>
#include <string>
#include <vector>

#include "test/ranks.h"
#include "transport/transport.h"

namespace gyre::test {

inline std::vector<std::string> backends() {
  if (const char* only = std::getenv("TEST_BACKEND")) return {only};  // not opened, so that UCX is not before a fork
  std::vector<std::string> names;
  for (const transport::Device& device : transport::devices("auto")) {
    if (device.backend != "ucx") names.push_back(device.backend);
  }
  return names;
}

/// What the ranks of a job over one of them say.
struct OverBackend {
  std::string backend;
  Words words;
};
/// A job over each of them, beside each other: for bodies that wait.
inline std::vector<OverBackend> run_over_backends(int ranks, const RankBody& body) {
  std::vector<OverBackend> all;
  for (const std::string& backend : backends()) all.push_back({backend, {}});
  std::vector<std::future<Words>> jobs;
  for (const OverBackend& one : all)
    jobs.push_back(std::async(std::launch::async, run_ranks, ranks, all_configured({"GYRE_TRANSPORT=" + one.backend}), body));
  for (OverBackend& one : all) one.words = jobs[static_cast<size_t>(&one - all.data())].get();
  return all;
}

}  // namespace gyre::test
