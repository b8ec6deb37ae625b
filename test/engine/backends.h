// The transports that tests of the engine run over: those that were built in and are there, or the one that TEST_BACKEND names. UCX only by
// its name: the tests "engine over ucx" run it over each of its own transports.
#pragma once
#include <cstdlib>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include "test/ranks.h"
#include "transport/transport.h"

namespace gyre::test {

inline std::vector<std::string> backends() {
  std::vector<std::string> names;
  const char* only = std::getenv("TEST_BACKEND");
  for (const transport::Device& device : transport::devices(only != nullptr ? only : "auto")) {
    if (only != nullptr || device.backend != "ucx") names.push_back(device.backend);
  }
  if (only != nullptr && names.empty()) throw std::runtime_error(std::string("there is no transport ") + only);
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
