#include "test/plugin/caller_job.h"

#include <cstdio>

namespace gyre::test {

std::atomic<bool> told_to_abort{false};

std::vector<Edge> Job::edges() const {
  std::vector<Edge> edges;
  for (int channel = 0; channel < channels; ++channel) {
    for (Rank from = 0; from < ranks; ++from) {
      for (Rank to = 0; to < ranks; ++to) {
        const bool wanted = pattern == "ring" ? to == (from + 1) % ranks : pattern == "pairs" ? from != to : from == 0 && to == 1;
        if (wanted) edges.push_back({static_cast<int>(edges.size()), from, to});
      }
    }
  }
  return edges;
}

void Job::say(const std::string& text) const {
  const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  const std::string line = fmt::format("{:.3f} rank {}: {}\n", now, rank, text);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace gyre::test
