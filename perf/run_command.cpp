#include "perf/run_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <thread>

#include "base/text.h"
#include "base/unique.h"

namespace gyre::perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto between_looks = std::chrono::milliseconds(10);
constexpr auto time_to_end = std::chrono::seconds(5);  // that a launcher has to end its ranks on other hosts

volatile std::sig_atomic_t ending_signal = 0;
void remember_ending(int signal) { ending_signal = signal; }

/// While it lives, a signal that would end this process is only remembered.
class Remembering {
 public:
  Remembering() {
    ending_signal = 0;
    struct sigaction action {};
    action.sa_handler = remember_ending;
    for (size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &action, &before_[i]);
  }
  Remembering(const Remembering&) = delete;
  Remembering& operator=(const Remembering&) = delete;
  ~Remembering() {
    for (size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
    if (ending_signal != 0) std::raise(ending_signal);
  }

 private:
  static constexpr std::array signals{SIGHUP, SIGINT, SIGTERM};
  std::array<struct sigaction, signals.size()> before_{};
};

std::vector<std::string> environment_with(const Variables& variables) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!variables.contains(std::string(text.substr(0, text.find('='))))) all.emplace_back(text);
  }
  for (const auto& [name, value] : variables)
    if (value) all.push_back(name + "=" + *value);
  return all;
}

/// As C has lists of texts.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out(texts.size() + 1, nullptr);
  std::ranges::transform(texts, out.begin(), [](std::string& text) { return text.data(); });
  return out;
}

Result<pid_t> start(std::vector<std::string> words, std::vector<std::string> environment, const UniqueFd& out, const UniqueFd& err) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const Unique<posix_spawn_file_actions_t, posix_spawn_file_actions_destroy> its_files(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const Unique<posix_spawnattr_t, posix_spawnattr_destroy> its_attributes(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, words.front().c_str(), &files, &attributes, pointers(words).data(), pointers(environment).data());
  if (error != 0) return Error{Code::invalid_argument, fmt::format("{}: {}", words.front(), errno_text(error))};
  return pid;
}

/// Its status; nothing: it still runs at that time, or this process is to end.
std::optional<int> await_end(pid_t pid, Clock::time_point until, bool whatever_signal) {
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (Clock::now() > until || (ending_signal != 0 && !whatever_signal)) return std::nullopt;
    std::this_thread::sleep_for(between_looks);
  }
  return status;
}

// First as a launcher expects it, which then ends its ranks.
void end_group(pid_t pid) {
  kill(-pid, SIGTERM);
  const bool ended = await_end(pid, Clock::now() + time_to_end, true).has_value();
  kill(-pid, SIGKILL);
  if (!ended) waitpid(pid, nullptr, 0);
}

std::string content_of(const UniqueFd& fd) {
  struct stat file {};
  fstat(fd.get(), &file);
  std::string text(static_cast<size_t>(file.st_size), '\0');
  const ssize_t got = pread(fd.get(), text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

std::string last_line_of(std::string_view text) {
  while (!text.empty()) {
    const size_t begin = text.find_last_of('\n') + 1;  // npos and 1 are 0
    const std::string_view line = text.substr(begin);
    if (line.find_first_not_of(" \t\r-=*#") != line.npos) return std::string(line.substr(line.find_first_not_of(" \t\r")));
    text = text.substr(0, begin == 0 ? 0 : begin - 1);
  }
  return "";
}

}  // namespace

std::string Finished::last_line() const {
  std::string line = last_line_of(err);
  return line.empty() ? last_line_of(out) : line;
}

Result<Finished> run_command(const std::vector<std::string>& words, const Variables& variables, std::chrono::seconds limit) {
  const UniqueFd out(memfd_create("stdout", MFD_CLOEXEC));
  const UniqueFd err(memfd_create("stderr", MFD_CLOEXEC));
  if (!out || !err) return Error{Code::system, fmt::format("memfd_create: {}", errno_text(errno))};
  const Remembering remembering;
  const pid_t pid = GYRE_TRY(start(words, environment_with(variables), out, err));
  const auto status = await_end(pid, Clock::now() + limit, false);
  if (!status) {
    end_group(pid);
    return Error{Code::timeout, fmt::format("did not end within {} s", limit.count())};
  }
  const int code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
  return Finished{code, content_of(out), content_of(err)};
}

}  // namespace gyre::perf
