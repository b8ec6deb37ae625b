// Ranks as processes, which reach each other's GPU memory: all-reduces whose results are checked, and what they take.
//   ranks-gpu [RANKS [MOST]]     that many processes (default: 2) on GPU rank % GPUs, or this one as GYRE_RANK, GYRE_SIZE and GYRE_ROOT
//   say;
//                                sizes up to so many bytes (default: 256M)
// Exits with 1 where a result is wrong, or where messages do not stay on the GPU, or, with NCCL_P2P_DISABLE, go by memory of the host and
// not by a network that reaches the GPU's; what is then logged says why.
#include <fmt/format.h>
#include <sched.h>

#include <chrono>
#include <cstdlib>

#include "base/log.h"
#include "base/text.h"
#include "engine/device_communicator.h"
#include "perf/launch.h"
#include "test/engine/test_device.h"
#include "test/figures.h"
#include "test/must.h"
#include "transport/launch.h"

using namespace gyre;
using engine::HandOff;
using test::must;
using Clock = std::chrono::steady_clock;

namespace {

constexpr size_t calls_at_once = 3;
// Processes take turns on a GPU, and a kernel that stays keeps the others from it for the whole of its turn.
constexpr size_t most_staying = 10'000;

/// Element i of a rank's part of a call; sums of 100 ranks fit.
int32_t part(size_t call, Rank rank, size_t i) {
  return static_cast<int32_t>((i * 2'654'435'761U + call * 40'503U + static_cast<size_t>(rank) * 977U) % 20'000'003U);
}

Config config_here() {
  auto config = must(Config::from_environment());
  if (config.deadline.origin == "default") must(config.set("GYRE_DEADLINE", "30", "ranks-gpu"));
  return config;
}

/// All-reduces of so many elements.
struct Case {
  size_t count;
  HandOff hand_off;

  size_t bytes() const { return count * sizeof(int32_t); }
  engine::Call call() const { return {Collective::all_reduce, count, DataType::int32, ReduceOp::sum, 0}; }
  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error(
        fmt::format("all_reduce of {} int32, {}: {}", count, hand_off == HandOff::gates ? "by gates" : "by a kernel that stays", why));
  }
};

class DeviceProcess {
 public:
  explicit DeviceProcess(const transport::Rendezvous& meeting)
      : gpu_(test::TestDevice::open(meeting.rank)),
        stream_(gpu_->open_stream()),
        device_(must(engine::DeviceCommunicator::create(must(engine::Communicator::create(meeting, config_here())), gpu_->gpu()))) {
    const bool apart = std::getenv("NCCL_P2P_DISABLE") != nullptr;
    if (apart && device_->by_host()) throw std::runtime_error("messages go by memory of the host");
    if (!apart && !device_->all_on_gpus()) throw std::runtime_error("messages do not all stay on the GPU");
  }

  /// Several calls given at once, out of place and in place; then one after the other, for the time.
  void run(const Case& now) {
    std::vector<kernels::GpuMemory> memory;
    for (size_t call = 0; call < calls_at_once; ++call) memory.push_back(filled(now, call));
    const kernels::GpuMemory apart = must(gpu_->gpu().allocate(now.bytes()));
    const auto output = [&](size_t call) { return call == 0 ? apart.get() : memory[call].get(); };
    for (size_t call = 0; call < calls_at_once; ++call) give(now, memory[call].get(), output(call));
    for (size_t call = 0; call < calls_at_once; ++call) check(now, call, output(call));
    std::vector<double> seconds;
    for (int i = 0; i < 6; ++i) {
      const auto begin = Clock::now();
      give(now, apart.get(), apart.get());
      await(now);
      if (i > 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    if (device_->rank() != 0) return;
    test::say({{"figure", "processes"},
               {"ranks", device_->size()},
               {"bytes", now.bytes()},
               {"by", device_->given().hand_off == HandOff::gates ? "gates" : "stays"},
               {"algorithm", device_->given().algorithm},
               {"us", test::median(seconds) * 1e6},
               {"gb_per_s", static_cast<double>(now.bytes()) / test::median(seconds) / 1e9}});
  }

  void finish() { must(device_->finish()); }

 private:
  kernels::GpuMemory filled(const Case& now, size_t call) {
    std::vector<int32_t> values(now.count);
    for (size_t i = 0; i < now.count; ++i) values[i] = part(call, device_->rank(), i);
    auto memory = must(gpu_->gpu().allocate(now.bytes()));
    stream_->copy(memory.get(), values.data(), now.bytes());
    await(now);
    return memory;
  }

  void give(const Case& now, std::byte* input, std::byte* output) {
    must(device_->enqueue(now.call(), input, output, stream_->handle(), now.hand_off));
  }

  void await(const Case& now) {
    const bool done = stream_->done();
    if (const Status status = device_->status(); !status) now.fail(status.error().what);
    if (!done) now.fail("the stream has not ended in 60 s");
  }

  void check(const Case& now, size_t call, const std::byte* result) {
    std::vector<int32_t> values(now.count);
    await(now);
    stream_->copy(values.data(), result, now.bytes());
    await(now);
    size_t wrong = 0;
    std::string first;
    for (size_t i = 0; i < now.count; ++i) {
      int32_t sum = 0;
      for (Rank rank = 0; rank < device_->size(); ++rank) sum += part(call, rank, i);
      if (values[i] != sum && wrong++ == 0) first = fmt::format("the first is {}: {} and not {}", i, values[i], sum);
    }
    if (wrong != 0) now.fail(fmt::format("call {} of {}: {} elements are wrong, {}", call, calls_at_once, wrong, first));
  }

  std::unique_ptr<test::TestDevice> gpu_;
  std::unique_ptr<test::TestStream> stream_;
  std::unique_ptr<engine::DeviceCommunicator> device_;
};

int run_rank(const transport::Rendezvous& meeting, size_t most_bytes) {
  log::set_prefix(fmt::format("rank {}: ", meeting.rank));
  log::set_level(log::Level::info);
  cpu_set_t all;  // the launcher binds a rank to one processor, and this has two threads that poll
  CPU_ZERO(&all);
  for (size_t i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &all);
  sched_setaffinity(0, sizeof all, &all);
  try {
    DeviceProcess rank(meeting);
    for (const size_t count : std::initializer_list<size_t>{1, 256, 10'000, 65'537, 262'144, 1'000'003, 16'777'216, 67'108'864}) {
      if (count * sizeof(int32_t) > most_bytes) break;
      rank.run({count, HandOff::gates});
      if (count <= most_staying) rank.run({count, HandOff::stays});
    }
    rank.finish();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "ranks-gpu: rank {} of {}: {}\n", meeting.rank, meeting.size, error.what());
    return 1;
  }
}

}  // namespace

int main(int count, char** arguments) {
  const auto ranks = parse_number(count > 1 ? arguments[1] : "2");
  const auto most = parse_bytes(count > 2 ? arguments[2] : "256M");
  const auto alone = transport::rendezvous_from_environment(transport::Environment::of_process());
  if (!alone || !ranks || !most) {
    fmt::print(stderr, "ranks-gpu: {}\n", alone ? "ranks-gpu [RANKS [MOST BYTES]]" : alone.error().what);
    return 1;
  }
  if (*alone) return run_rank(**alone, *most);
  return perf::run_local_ranks(static_cast<int>(*ranks), std::chrono::seconds(60),
                               [&](const transport::Rendezvous& meeting) { return run_rank(meeting, *most); });
}
