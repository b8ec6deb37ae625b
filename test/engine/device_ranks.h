// Ranks as threads, each with a communicator on a GPU, a stream of the user's, and a communicator on host memory whose results are to be
// the same.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <tuple>

#include "engine/device_communicator.h"
#include "test/engine/test_device.h"
#include "test/engine/unreachable_gpu.h"
#include "test/engine/watched_gpu.h"
#include "test/kernels/patterns.h"
#include "test/ranks.h"

namespace gyre::test {

inline constexpr std::array both_hand_offs{engine::HandOff::gates, engine::HandOff::stays};

/// Whose GPU memory ranks reach, so that messages stay there: each other's, nobody's, or all but rank 0's.
enum class Reach : uint8_t { all, none, some };
inline constexpr std::array every_reach{Reach::all, Reach::none, Reach::some};

struct Way {
  engine::HandOff hand_off;
  Reach reach;
};
/// The first two have each, and so have the last two.
inline constexpr std::array every_way{Way{engine::HandOff::gates, Reach::all}, Way{engine::HandOff::stays, Reach::none},
                                      Way{engine::HandOff::stays, Reach::all}, Way{engine::HandOff::gates, Reach::none}};

struct DeviceRank {
  engine::Communicator& host;
  engine::DeviceCommunicator& device;
  TestDevice& gpu;
  TestStream& stream;

  Rank rank() const { return host.rank(); }
  int size() const { return host.size(); }
};
/// Waits until something is wrong; what.
inline std::string error_of(DeviceRank& on) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  Status status = on.device.status();
  while (status && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    status = on.device.status();
  }
  return status ? "nothing is wrong" : status.error().what;
}
/// Aborts; empty: until then nothing ran that the stream was given next, and within a second of it all has.
inline std::string held_until_abort(DeviceRank& on) {
  const auto passed = std::make_shared<std::atomic<bool>>(false);
  on.stream.add([passed] { *passed = true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const bool held = !*passed;
  on.device.abort("the test has seen enough");
  if (!on.stream.done_within(std::chrono::seconds(1))) return "the stream is not free";
  return held ? "" : "the stream was not held";
}
/// Of a collective that can't finish: what is wrong. An abort frees the stream, and nothing else does.
inline std::string end_of(DeviceRank& on) {
  const std::string said = error_of(on);
  const std::string wrong = held_until_abort(on);
  return wrong.empty() ? said : wrong;
}
/// Where the call may say it already, as one does that learns of it while it is given to the stream. That may hold the stream or not.
inline std::string end_of(DeviceRank& on, const Status& given) {
  if (given) return end_of(on);
  on.device.abort("the test has seen enough");
  return given.error().what;
}

using DeviceBody = std::function<std::string(DeviceRank&)>;

/// What a rank of so many says of its GPU; null: nothing.
using RowOfRank = topo::GpuRow (*)(Rank rank, int ranks);

inline std::string on_device(engine::Communicator& first, const DeviceBody& body, Reach reach, RowOfRank row_of) {
  const auto row = row_of != nullptr ? std::optional(row_of(first.rank(), first.size())) : std::nullopt;
  const auto split = row ? first.split(0, first.rank(), nullptr, row) : Result<std::unique_ptr<engine::Communicator>>(nullptr);
  if (!split) return "split: " + split.error().what;
  engine::Communicator& host = row ? **split : first;
  const auto gpu = TestDevice::open();
  UnreachableGpu unreachable(gpu->gpu());
  const bool reached = reach == Reach::all || (reach == Reach::some && host.rank() != 0);
  Watch::allow();
  WatchedGpu watched(reached ? gpu->gpu() : unreachable);
  const auto stream = gpu->open_stream();
  auto second = host.split(0, host.rank(), nullptr, row);
  if (!second) return "split: " + second.error().what;
  auto device = engine::DeviceCommunicator::create(*std::move(second), watched);
  if (!device) return "create on the device: " + device.error().what;
  if ((*device)->all_on_gpus() != (reach == Reach::all || host.size() == 1)) return "messages do not go where they should";
  if (const Status as_other = host.only_on_gpus(reach == Reach::all, {(*device)->has_packets(), (*device)->maps()}); !as_other)
    return as_other.error().what;
  DeviceRank rank{host, **device, *gpu, *stream};
  const std::string word = body(rank);
  std::ignore = (*device)->finish();  // others may still need what this rank's GPU has done
  if (word.empty() && watched.strangers() != 0)
    return fmt::format("{} calls into CUDA by threads that must make none", watched.strangers());
  return word;
}

/// Runs `body` on each of so many ranks, or as many as the device takes.
inline std::string run_device_ranks(int wanted, const std::vector<std::string>& settings, const DeviceBody& body, Reach reach = Reach::all,
                                    RowOfRank row_of = nullptr) {
  const int ranks = std::min(wanted, TestDevice::most_ranks());
  const Words words =
      run_ranks(ranks, all_configured(settings), [&](engine::Communicator& host) { return on_device(host, body, reach, row_of); });
  std::string all;
  for (const std::string& word : words) all += word.empty() ? "" : word + "\n";
  return all;
}

/// One of the ranks' threads gives them all what they are to do, while the others wait for it.
inline std::string given_by_one_thread(int ranks, const std::vector<std::string>& configured,
                                       const std::function<std::string(const std::vector<DeviceRank*>&)>& give) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<DeviceRank*> all(static_cast<size_t>(std::min(ranks, TestDevice::most_ranks())));
  size_t ready = 0;
  bool over = false;
  std::string wrong;
  return run_device_ranks(ranks, configured, [&](DeviceRank& on) -> std::string {
    std::unique_lock lock(mutex);
    all.at(static_cast<size_t>(on.rank())) = &on;
    if (++ready == all.size()) {
      wrong = give(all);
      over = true;
      changed.notify_all();
    }
    changed.wait(lock, [&] { return over; });
    return wrong;
  });
}

/// Elements in the memory of a rank's GPU.
template <class T>
class DeviceArray {
 public:
  DeviceArray(DeviceRank& on, std::vector<T> values)
      : stream_(on.stream), bytes_(values.size() * sizeof(T)), memory_(*on.gpu.gpu().allocate(bytes_)), given_(std::move(values)) {
    stream_.copy(memory_.get(), given_.data(), bytes_);
  }
  ~DeviceArray() {
    if (memory_ == nullptr || stream_.done_within(std::chrono::seconds(20))) return;
    std::ignore = memory_.release();  // kernels may still use it: the test fails by its own words, not by a crash
  }
  DeviceArray(DeviceArray&&) noexcept = default;
  DeviceArray& operator=(DeviceArray&&) = delete;

  T* data() { return reinterpret_cast<T*>(memory_.get()); }
  size_t size() const { return given_.size(); }
  /// What they are once the stream has done all that it was given; none where it does not end.
  std::vector<T> get() {
    std::vector<T> values(size());
    if (!stream_.done()) return {};  // CUDA's copy to memory of the host would wait for it, however long
    stream_.copy(values.data(), memory_.get(), bytes_);
    return stream_.done() ? values : std::vector<T>();
  }
  bool all(T value) {
    const std::vector<T> values = get();
    return values.size() == size() && std::all_of(values.begin(), values.end(), [&](T v) { return v == value; });
  }

 private:
  TestStream& stream_;
  size_t bytes_;
  kernels::GpuMemory memory_;
  std::vector<T> given_;
};

/// A call's memory on one rank: random elements, each fourth one that hurts.
class CallMemory {
 public:
  CallMemory(const engine::Call& call, Rank rank, int ranks, bool in_place)
      : extent_(engine::extent(call, rank, ranks)), in_place_(in_place && extent_.reads && extent_.writes) {
    const size_t size = in_place_ ? std::max(extent_.input_bytes, extent_.output_bytes) : extent_.input_bytes + extent_.output_bytes;
    const Patterns special = special_patterns(call.type);
    std::mt19937_64 random(static_cast<uint64_t>(rank) * 1000 + static_cast<uint64_t>(call.type));
    Patterns patterns;
    for (size_t i = 0; i < size / size_of(call.type); ++i) {
      const uint64_t drawn = random();
      patterns.push_back((drawn % 4 == 0 ? special[drawn / 4 % special.size()] : drawn) & pattern_mask(call.type));
    }
    bytes = packed(call.type, patterns);
    bytes.resize(bytes.size() + 16);  // never none
  }
  const std::byte* input(const std::byte* memory) const { return extent_.reads ? memory + (in_place_ ? extent_.input_at : 0) : nullptr; }
  std::byte* output(std::byte* memory) const {
    return extent_.writes ? memory + (in_place_ ? extent_.output_at : extent_.input_bytes) : nullptr;
  }

  Bytes bytes;

 private:
  engine::Extent extent_;
  bool in_place_;
};

/// Empty: the same, but for which NaN a NaN is.
inline std::string difference(DataType type, const Bytes& found, const Bytes& expected) {
  if (found == expected) return {};
  const Patterns a = unpacked(type, found), b = unpacked(type, expected);
  for (size_t i = 0; i < a.size(); ++i) {
    if (i >= b.size() || !same_result(type, a[i], b[i]))
      return fmt::format("element {} is {:#x} and not {:#x}", i, a[i], i < b.size() ? b[i] : 0);
  }
  return a.size() == b.size() ? "" : "the stream does not end";
}

/// Empty: this call gives the bits on the device that it gives on the host.
inline std::string same_bits(DeviceRank& on, const engine::Call& call, engine::HandOff hand_off, bool in_place) {
  CallMemory here(call, on.rank(), on.size(), in_place);
  DeviceArray<std::byte> there(on, here.bytes);
  Status status = on.device.enqueue(call, here.input(there.data()), here.output(there.data()), on.stream.handle(), hand_off);
  if (status) status = on.host.run(call, here.input(here.bytes.data()), here.output(here.bytes.data()));
  const Bytes found = there.get();
  if (status) status = on.device.status();
  const std::string wrong = status ? difference(call.type, found, here.bytes) : status.error().what;
  constexpr std::array words{"by gates", "by a kernel that stays", "by packets", "mapped"};
  const char* const how = words.at(static_cast<size_t>(hand_off));
  return wrong.empty() ? "" : engine::in_words(call, how) + (in_place ? " in place: " : ": ") + wrong;
}

}  // namespace gyre::test
