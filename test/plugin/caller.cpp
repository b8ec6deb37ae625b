// Plays NCCL against a net plugin, through its C ABI alone: ranks as processes, each with the two threads of every communicator, in the
// order of calls that NCCL has. Every message is checked. Exit code 0: all was right; 10 + ncclResult_t: an error of the plugin; 13:
// something was wrong; 18: aborted.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <thread>

#include "test/plugin/caller_leaks.h"
#include "test/plugin/caller_proxies.h"

using namespace gyre;
using namespace gyre::test;

namespace {

struct Told {
  std::string plugin;
  int version = 0;  // 0: the newest
  int rank = -1;    // -1: all, as processes of ours
  std::string mailbox, only, die;
  int rounds = 1;
  int soak_seconds = 0;
  int patience = 30;
  Job job;
};

void read_options(CLI::App& app, Told& told) {
  Job& job = told.job;
  app.add_option("plugin", told.plugin, "the plugin's .so")->required();
  app.add_option("--table", told.version, "version of NCCL's table; default: the newest");
  app.add_option("--ranks", job.ranks, "number of ranks")->check(CLI::Range(1, 64));
  app.add_option("--rank", told.rank, "run this rank only, with --mailbox");
  app.add_option("--mailbox", told.mailbox, "folder through which the ranks meet");
  app.add_option("--pattern", job.pattern, "ring, pairs: from each to each, or one: from rank 0 to 1")
      ->check(CLI::IsMember({"ring", "pairs", "one"}));
  app.add_option("--channels", job.channels, "connections from one rank to another");
  app.add_option("--contexts", job.contexts, "communicators of each process");
  app.add_option("--senders", job.traffic.senders, "tags that share a connection")->check(CLI::Range(1, 8));
  app.add_option("--operations", job.traffic.operations, "of each connection");
  app.add_option("--slot", job.traffic.simple_bytes, "largest message")->transform(CLI::AsSizeValue(false));
  app.add_option("--only", told.only, "one protocol: ll, ll128 or simple")->check(CLI::IsMember({"ll", "ll128", "simple"}));
  app.add_option("--seed", job.traffic.seed, "what all is drawn from");
  app.add_option("--rounds", told.rounds, "times that all is made and closed");
  app.add_option("--soak", told.soak_seconds, "rounds of random shapes, for so many seconds");
  app.add_flag("--silent", job.silent, "senders never send");
  app.add_flag("--deaf", job.deaf, "receivers never receive");
  app.add_option("--die", told.die, "RANK@POINT: a rank that kills itself there");
  app.add_option("--patience", told.patience, "seconds without progress after which a rank aborts");
}

Status understand(Told& told) {
  if (told.only == "ll") told.job.traffic.only = Protocol::ll;
  if (told.only == "ll128") told.job.traffic.only = Protocol::ll128;
  if (told.only == "simple") told.job.traffic.only = Protocol::simple;
  told.job.patience = std::chrono::seconds(told.patience);
  if (told.rank >= 0 && told.mailbox.empty()) return Error{Code::invalid_usage, "--rank needs --mailbox"};
  const size_t at = told.die.find('@');
  const auto* point = std::find(std::begin(point_names), std::end(point_names), told.die.substr(at + 1));
  if (!told.die.empty() && (at == std::string::npos || point == std::end(point_names))) {
    return Error{Code::invalid_usage, "--die takes RANK@POINT, not " + told.die};
  }
  return {};
}

// The point at which this rank is to die.
Point death_of(const Told& told) {
  if (told.die.empty() || told.die.substr(0, told.die.find('@')) != std::to_string(told.job.rank)) return Point::none;
  const std::string name = told.die.substr(told.die.find('@') + 1);
  return static_cast<Point>(std::find(std::begin(point_names), std::end(point_names), name) - std::begin(point_names));
}

// In a soak each round has a shape of its own, the same for all ranks.
void draw_shape(Job& job) {
  Traffic& traffic = job.traffic;
  traffic.seed = mixed(traffic.seed, static_cast<uint64_t>(job.round));
  const auto one_of = [&](uint64_t what, auto... choices) {
    const int values[] = {choices...};
    return values[mixed(traffic.seed, what) % sizeof...(choices)];
  };
  job.pattern = one_of(1, 0, 1) != 0 ? "ring" : "pairs";
  job.channels = one_of(2, 1, 1, 2, 3);
  job.contexts = one_of(3, 1, 1, 2);
  traffic.senders = one_of(4, 1, 1, 2, 3, 8);
  traffic.simple_bytes = size_t{1} << one_of(5, 10, 16, 20, 23);
  if (traffic.simple_bytes > (size_t{1} << 20)) traffic.senders = std::min(traffic.senders, 2), job.channels = 1;
  traffic.operations = one_of(6, 1, 5, 20);
}

Status run_round(perf::NetPlugin& plugin, const Job& job) {
  std::vector<Status> results(static_cast<size_t>(job.contexts));
  std::vector<void*> contexts;
  for (int i = 0; i < job.contexts; ++i) {
    contexts.push_back(GYRE_TRY(plugin.init({.communicator = mixed(job.traffic.seed, static_cast<uint64_t>(i))})));
  }
  const int devices = GYRE_TRY(plugin.devices());
  if (devices < 1) return Error{Code::internal, "WRONG: no devices"};
  for (int i = 0; i < devices; ++i) GYRE_TRY(plugin.properties(i));
  std::vector<std::thread> services;
  for (int i = 0; i < job.contexts; ++i) {
    services.emplace_back([&, i] {
      Proxies proxies({plugin, contexts[static_cast<size_t>(i)], i, devices}, job);
      results[static_cast<size_t>(i)] = proxies.serve();
    });
  }
  for (std::thread& service : services) service.join();
  for (void* context : contexts) GYRE_TRY(plugin.finalize(context));
  for (Status& result : results) GYRE_TRY(std::move(result));
  return {};
}

// All ranks meet; rank 0 decides whether there is another round. Rounds before are over for all of them.
Result<bool> goes_on(const Job& job, bool wanted) {
  const auto begun = Clock::now();
  const auto await = [&](const std::string& name) -> Result<std::string> {
    for (;;) {
      if (auto text = job.mailbox.read(name)) return *std::move(text);
      if (told_to_abort || Clock::now() > begun + job.patience) return Error{Code::timeout, "aborted: no " + name + " in the mailbox"};
      std::this_thread::yield();
    }
  };
  const auto name = [&](const std::string& what) { return fmt::format("round{}.{}", job.round, what); };
  GYRE_TRY(job.mailbox.post(name(fmt::format("rank{}", job.rank)), {}));
  if (job.rank == 0) {
    for (Rank rank = 0; rank < job.ranks; ++rank) GYRE_TRY(await(name(fmt::format("rank{}", rank))));
    GYRE_TRY(job.mailbox.post(name("next"), wanted ? "go" : "stop"));
  }
  return GYRE_TRY(await(name("next"))) == "go";
}

Status run_rank(const Told& told) {
  std::signal(SIGTERM, [](int) { told_to_abort = true; });
  const auto plugin = GYRE_TRY(perf::NetPlugin::open(told.plugin, told.version == 0 ? std::nullopt : std::optional(told.version)));
  std::thread([] {}).join();  // a sanitizer starts one of its own with the first
  const Owned before = owned_now();
  const auto begun = Clock::now();
  for (Job job = told.job;; ++job.round) {
    job.die = death_of(told);
    Job shaped = job;
    if (told.soak_seconds > 0) draw_shape(shaped);
    GYRE_TRY(run_round(*plugin, shaped));
    if (auto left = what_is_left(before); !left.empty()) return Error{Code::internal, "WRONG: after the last close are left: " + left};
    const bool more = told.soak_seconds > 0 ? Clock::now() < begun + std::chrono::seconds(told.soak_seconds) : job.round + 1 < told.rounds;
    if (!GYRE_TRY(goes_on(job, more))) break;
  }
  told.job.say("all is right");
  return {};
}

int exit_code(const Job& job, const Status& status) {
  if (status) return 0;
  job.say("ends: " + status.error().what);
  return 10 + static_cast<int>(status.error().code);
}

// Ranks as children, before this process has threads or a plugin. The first exit code that is not 0.
int run_ranks(Told told) {
  std::string folder = (std::filesystem::temp_directory_path() / "caller-XXXXXX").string();
  if (told.mailbox.empty() && mkdtemp(folder.data()) == nullptr) return 1;
  if (told.mailbox.empty()) told.job.mailbox = Mailbox(folder);
  std::vector<pid_t> children;
  for (Rank rank = 0; rank < told.job.ranks; ++rank) {
    told.job.rank = rank;
    children.push_back(fork());
    if (children.back() != 0) continue;
    std::_Exit(exit_code(told.job, run_rank(told)));
  }
  int result = 0;
  for (size_t left = children.size(); left > 0; --left) {
    int status = 0;
    told.job.rank = static_cast<Rank>(std::find(children.begin(), children.end(), wait(&status)) - children.begin());
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code != 0) told.job.say(fmt::format("ended with {}", code));
    if (code != 0 && (result == 0 || result == 128 + SIGKILL)) result = code;
  }
  if (told.mailbox.empty()) std::filesystem::remove_all(folder);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Plays NCCL against a net plugin.");
  Told told;
  read_options(app, told);
  CLI11_PARSE(app, argc, argv);
  told.job.mailbox = Mailbox(told.mailbox);
  if (const Status understood = understand(told); !understood) return fmt::print(stderr, "caller: {}\n", understood.error().what), 2;
  fmt::print("seed {}\n", told.job.traffic.seed);
  std::fflush(stdout);
  if (told.rank < 0) return run_ranks(told);
  told.job.rank = told.rank;
  return exit_code(told.job, run_rank(told));
}
