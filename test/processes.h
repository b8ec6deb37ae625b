// The ranks of a job as processes: where one is killed, or stops, or is not to move what others of its process have in flight. They are
// forked, so that ranks over UCX need a parent that has not opened it: cases tagged [processes] run there by themselves.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "test/folder.h"
#include "test/ranks.h"

namespace gyre::test {

/// As run_ranks(). A rank that is killed says nothing.
inline Words run_processes(int size, const RankConfig& config, const RankBody& body) {
  const transport::Door door = *transport::open_door();
  const Folder shared("/dev/shm");              // UCX's files, each there for a moment: who is killed within that leaves it
  std::vector<std::pair<pid_t, int>> children;  // process, and where it writes
  for (Rank rank = 0; rank < size; ++rank) {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) throw std::runtime_error("pipe");
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("UCX_POSIX_DIR", shared.path().c_str(), 1);
      const std::string said = run_rank(door, rank, size, config, body);
      [[maybe_unused]] const ssize_t wrote = ::write(pipe[1], said.data(), said.size());
      ::_exit(0);
    }
    ::close(pipe[1]);
    children.emplace_back(child, pipe[0]);
  }
  Words words;
  for (const auto& [child, end] : children) {
    std::string& said = words.emplace_back();
    std::array<char, 1024> text;
    for (ssize_t got = 1; got > 0;) {
      got = ::read(end, text.data(), text.size());
      if (got > 0) said.append(text.data(), static_cast<size_t>(got));
    }
    ::close(end);
    ::waitpid(child, nullptr, 0);
  }
  return words;
}

}  // namespace gyre::test
