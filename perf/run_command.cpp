#include "perf/run_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/unique.h"
#include "perf/ending_signals.h"

namespace gyre::perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int look_ms = 10;                            // between two looks
constexpr auto time_to_end = std::chrono::seconds(5);  // that a launcher has to end its ranks on other hosts
constexpr auto last_words = std::chrono::seconds(1);   // of what somebody else still holds an output of

/// Pipes, since a command may open /dev/stdout anew: of a file that would write over what is there.
struct Pipe {
  UniqueFd from, to;
  std::string text;  // what has come
};
using Pipes = std::array<Pipe, 2>;

Result<Pipe> pipe_to_here() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return Error{Code::system, fmt::format("pipe2: {}", errno_text(errno))};
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1]), ""};
  fcntl(pipe.from.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

void read_part(Pipe& pipe) {
  std::array<char, 64 << 10> part;
  const ssize_t got = read(pipe.from.get(), part.data(), part.size());
  if (got > 0) pipe.text.append(part.data(), static_cast<size_t>(got));
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) pipe.from = UniqueFd();
}

/// For a while, or until something comes.
void listen_to(Pipes& pipes) {
  std::array<pollfd, 2> polled{};
  for (size_t i = 0; i < pipes.size(); ++i) polled[i] = {pipes[i].from.get(), POLLIN, 0};  // poll passes over -1
  if (poll(polled.data(), polled.size(), look_ms) <= 0) return;
  for (size_t i = 0; i < pipes.size(); ++i)
    if (polled[i].revents != 0) read_part(pipes[i]);
}

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

Result<pid_t> start(std::vector<std::string> words, std::vector<std::string> environment, Pipes& pipes) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const Unique<posix_spawn_file_actions_t, posix_spawn_file_actions_destroy> its_files(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, pipes[0].to.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, pipes[1].to.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const Unique<posix_spawnattr_t, posix_spawnattr_destroy> its_attributes(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, words.front().c_str(), &files, &attributes, pointers(words).data(), pointers(environment).data());
  if (error != 0) return Error{Code::invalid_argument, fmt::format("{}: {}", words.front(), errno_text(error))};
  for (Pipe& pipe : pipes) pipe.to = UniqueFd();
  return pid;
}

// Its process is left, so that nobody else has its number.
bool has_ended(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

Status await_end(pid_t pid, Pipes& pipes, CommandLimits limits) {
  for (const auto until = Clock::now() + limits.time; !has_ended(pid);) {
    if (const int signal = EndingSignals::come())
      return Error{Code::system, fmt::format("ended, as was this process: {}", strsignal(signal))};
    if (Clock::now() > until) return Error{Code::timeout, fmt::format("did not end within {} s", limits.time.count())};
    if (pipes[0].text.size() + pipes[1].text.size() > limits.output_bytes)
      return Error{Code::invalid_argument, fmt::format("printed more than {} MiB", limits.output_bytes >> 20)};
    listen_to(pipes);
  }
  return {};
}

// The command if it still runs, first as a launcher expects it, which then ends its ranks; and what it has left behind.
int end_group(pid_t pid, Pipes& pipes) {
  kill(-pid, SIGTERM);
  for (const auto until = Clock::now() + time_to_end; !has_ended(pid) && Clock::now() < until;) listen_to(pipes);
  for (const auto until = Clock::now() + last_words; (pipes[0].from || pipes[1].from) && Clock::now() < until;) listen_to(pipes);
  kill(-pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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

std::string Finished::end() const {
  const std::string number = fmt::format("exit code {}", code);
  return code > 128 && code - 128 < SIGRTMIN ? fmt::format("{} ({})", number, strsignal(code - 128)) : number;
}

std::string Finished::last_line() const {
  std::string line = last_line_of(err);
  return line.empty() ? last_line_of(out) : line;
}

Result<Finished> run_command(const std::vector<std::string>& words, const Variables& variables, CommandLimits limits) {
  auto out = GYRE_TRY(pipe_to_here());
  auto err = GYRE_TRY(pipe_to_here());
  Pipes pipes{std::move(out), std::move(err)};
  const WaitedChildren waited;
  const EndingSignals held_back;
  const pid_t pid = GYRE_TRY(start(words, environment_with(variables), pipes));
  const Status status = await_end(pid, pipes, limits);
  const int code = end_group(pid, pipes);
  if (!status) return status.error();
  return Finished{code, std::move(pipes[0].text), std::move(pipes[1].text)};
}

}  // namespace gyre::perf
