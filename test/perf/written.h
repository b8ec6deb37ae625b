// Files for tests that read results.
#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace gyre::test {

/// A file with this text, as long as it lives.
class Written {
 public:
  explicit Written(const std::string& text, const std::string& name = "results.json")
      : path_(fmt::format("/tmp/gyre-perf-test-{}-{}", getpid(), name)) {
    std::ofstream(path_) << text;
  }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;
  ~Written() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The first line of a sweep, with what is special about it.
inline std::string sweep_head(const std::string& special = R"("algorithm":"auto")", int ranks = 4,
                              const std::string& collective = "all_reduce") {
  return fmt::format(
      R"({{"gyre":"0.1.0","commit":"abc","command":"c","date":"d","machine":{{"processor":"P","processors":2,"kernel":"k"}},)"
      R"("collective":"{}","ranks":{},"transports":["","shm","shm","shm"],{}}})"
      "\n",
      collective, ranks, special);
}
/// A row; in place takes twice the time.
inline std::string sweep_row(size_t bytes, double us, const std::string& algorithm = "ring",
                             const std::string& more = R"(,"predicted_us":3)") {
  return fmt::format(R"({{"bytes":{},"count":1,"type":"float","redop":"sum","root":null,"algorithm":"{}","out_of_place":{{"time_us":{}}},)"
                     R"("in_place":{{"time_us":{}}}{}}})"
                     "\n",
                     bytes, algorithm, us, 2 * us, more);
}
/// A line of measure: one round more takes twice the time.
inline std::string sample(size_t bytes, double us, const std::string& algorithm) {
  return fmt::format(R"({{"ranks":4,"transport":"shm","processors":2,"algorithm":"{}","grid":[],"bytes":{},"us":[{},{},{}]}})"
                     "\n",
                     algorithm, bytes, us, 2 * us, us);
}

}  // namespace gyre::test
