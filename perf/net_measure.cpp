#include "perf/net_measure.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "perf/peers/machine.h"

namespace gyre::perf {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t token_bytes = 8;
constexpr int batches_wanted = 20;  // in the time
constexpr size_t fewest_batches = 5;
constexpr size_t most_round_trips = 1 << 20;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// How often `once` fills `seconds`; found by ever longer runs, which warm up.
template <class Once>
Result<size_t> repetitions(size_t first, size_t most, double seconds, const Once& once) {
  for (size_t count = first;;) {
    const NetBatch batch = GYRE_TRY(once(count));
    const double times = seconds / std::max(batch.seconds * (1 - std::min(batch.waited, 0.9)), 1e-9);
    const auto scaled = static_cast<size_t>(static_cast<double>(count) * std::min(times, 16.0));
    if (times < 2 || count == most) return std::clamp(scaled, first, most);
    count = std::min(scaled, most);
  }
}

}  // namespace

Result<NetMeasurement> NetMeasurement::make(NetPlugin& plugin, const NetConnections& connections, transport::Bootstrap& bootstrap,
                                            NetPatience& patience, const NetSetting& setting) {
  NetMeasurement made({plugin, connections, bootstrap, patience}, setting);
  made.tokens_ = GYRE_TRY(made.flows(made.first_of_each_way(), token_bytes, 1));
  return made;
}

std::vector<NetComm> NetMeasurement::comms(bool both_ways) const {
  const NetConnections& connections = context_.connections;
  transport::Bootstrap& bootstrap = context_.bootstrap;
  std::vector<NetComm> all;
  if (both_ways || bootstrap.rank() == 0) all = connections.sends();
  if (both_ways || bootstrap.rank() == 1) all.insert(all.end(), connections.receives().begin(), connections.receives().end());
  return all;
}

std::vector<NetComm> NetMeasurement::first_of_each_way() const {
  return {context_.connections.sends().front(), context_.connections.receives().front()};
}

Result<NetMeasurement::Flows> NetMeasurement::flows(std::vector<NetComm> comms, size_t bytes, int depth) const {
  Flows made;
  made.slots.reserve(comms.size());  // flows refer to them
  for (const NetComm comm : comms) {
    made.slots.push_back(GYRE_TRY(NetSlots::make(context_.plugin, comm, bytes, depth, setting_.shared_buffer)));
  }
  int sends = 0;
  int receives = 0;
  for (size_t i = 0; i < comms.size(); ++i) {
    made.flows.emplace_back(context_.plugin, comms[i], made.slots[i], depth, comms[i].sends ? sends++ : receives++);
  }
  return made;
}

// Both ranks get the same, and so decide alike.
Result<NetBatch> NetMeasurement::slower(double seconds, double waited_us) {
  NetBatch most{};
  for (const std::string& text : GYRE_TRY(context_.bootstrap.all_gather(fmt::format("{} {}", seconds, waited_us)))) {
    most.seconds = std::max(most.seconds, std::stod(text));
    most.waited = std::max(most.waited, std::stod(text.substr(text.find(' '))) / 1e6);
  }
  most.waited = std::min(1.0, most.waited / most.seconds);  // a rank that started earlier may have waited longer
  return most;
}

// Over the connections that are measured: their set-up is then complete, and ranks start within a message's time.
Status NetMeasurement::meet() {
  const std::span<NetFlow> both = tokens_.flows;
  for (NetFlow& flow : both) flow.start(1, false);
  if (context_.bootstrap.rank() == 0) return run_flows(both, context_.patience);
  GYRE_TRY(run_flows(both.subspan(1), context_.patience));
  return run_flows(both.first(1), context_.patience);
}

Result<NetBatch> NetMeasurement::run(Flows& flows, uint64_t messages_each) {
  for (NetFlow& flow : flows.flows) flow.start(messages_each, false);
  GYRE_TRY(meet());
  const double waited = peers::waited_for_cpu_us();
  const auto start = Clock::now();
  GYRE_TRY(run_flows(flows.flows, context_.patience));
  const double seconds = seconds_since(start);
  return slower(seconds, peers::waited_for_cpu_us() - waited);
}

Result<uint64_t> NetMeasurement::check(size_t bytes) {
  Flows all = GYRE_TRY(flows(comms(true), bytes, setting_.shared_buffer ? 1 : setting_.depth));
  for (NetFlow& flow : all.flows) flow.start(static_cast<uint64_t>(setting_.checked), true);
  GYRE_TRY(run_flows(all.flows, context_.patience));
  uint64_t wrong = 0;
  for (const NetFlow& flow : all.flows) wrong += flow.wrong();
  uint64_t sum = 0;
  for (const std::string& text : GYRE_TRY(context_.bootstrap.all_gather(std::to_string(wrong)))) sum += parse_number(text).value_or(1);
  return sum;
}

Result<NetBandwidth> NetMeasurement::bandwidth(size_t bytes) {
  Flows used = GYRE_TRY(flows(comms(setting_.bidirectional), bytes, setting_.depth));
  const double wanted = static_cast<double>(setting_.time.count()) / 1e3;
  const auto depth = static_cast<size_t>(setting_.depth);
  const size_t messages =
      GYRE_TRY(repetitions(2 * depth, SIZE_MAX / 64, wanted / batches_wanted, [&](size_t count) { return run(used, count); }));
  std::vector<NetBatch> batches;
  for (double took = 0; took < wanted || batches.size() < fewest_batches; took += batches.back().seconds) {
    batches.push_back(GYRE_TRY(run(used, messages)));
  }
  return bandwidth_of(batches, messages * static_cast<uint64_t>(setting_.connections) * (setting_.bidirectional ? 2 : 1));
}

Result<NetLatency> NetMeasurement::latency(size_t bytes) {
  Flows used = GYRE_TRY(flows(first_of_each_way(), bytes, 2));
  const double wanted = static_cast<double>(setting_.time.count()) / 1e3;
  std::vector<uint32_t> nanoseconds(most_round_trips);  // touched now
  const auto bounce_some = [&](size_t count) { return bounce(used, std::span(nanoseconds).first(count)); };
  const size_t round_trips = GYRE_TRY(repetitions(4, most_round_trips / fewest_batches, wanted / batches_wanted, bounce_some));
  std::vector<NetBatch> batches;
  for (double took = 0; (took < wanted || batches.size() < fewest_batches) && (batches.size() + 1) * round_trips <= most_round_trips;) {
    batches.push_back(GYRE_TRY(bounce(used, std::span(nanoseconds).subspan(batches.size() * round_trips, round_trips))));
    took += batches.back().seconds;
  }
  const std::vector<size_t> counting = batches_that_count(batches);
  std::vector<uint32_t> kept;
  for (const size_t i : counting) {
    const auto first = nanoseconds.begin() + static_cast<std::ptrdiff_t>(i * round_trips);
    kept.insert(kept.end(), first, first + static_cast<std::ptrdiff_t>(round_trips));
  }
  NetLatency latency = latency_of(kept);
  latency.waited = average_wait(batches, counting);
  latency.batches = counting.size();
  return latency;
}

// A receive is posted ahead of each message, as NCCL has them, and none of a rank's sends is under way when it takes the time.
Result<NetBatch> NetMeasurement::bounce(Flows& flows, std::span<uint32_t> nanoseconds) {
  const size_t round_trips = nanoseconds.size();
  NetFlow& send = flows.flows[0];
  NetFlow& receive = flows.flows[1];
  send.start(round_trips, false);
  receive.start(round_trips, false);
  GYRE_TRY(meet());
  const auto until = [&](uint64_t sent, uint64_t received, uint64_t offered) -> Status {
    while (true) {
      bool moved = false;
      if (send.posted() < sent) GYRE_TRY(send.post(moved));
      if (send.done() < send.posted()) GYRE_TRY(send.test(moved));
      if (receive.posted() < offered) GYRE_TRY(receive.post(moved));
      if (receive.done() < std::min(received, receive.posted())) GYRE_TRY(receive.test(moved));
      if (send.done() == sent && receive.done() == received) return {};
      if (moved)
        context_.patience.moved();
      else
        GYRE_TRY(context_.patience.wait("a message"));
    }
  };
  const bool first = context_.bootstrap.rank() == 0;
  const double waited = peers::waited_for_cpu_us();
  const auto start = Clock::now();
  auto last = start;
  for (size_t i = 0; i < round_trips; ++i) {
    GYRE_TRY(until(first ? i + 1 : i, i + 1, std::min(i + 2, round_trips)));
    if (!first) continue;
    const auto now = Clock::now();
    nanoseconds[i] = static_cast<uint32_t>(std::min<int64_t>((now - last).count(), UINT32_MAX));
    last = now;
  }
  GYRE_TRY(until(round_trips, round_trips, round_trips));
  return slower(first ? std::chrono::duration<double>(last - start).count() : 0, peers::waited_for_cpu_us() - waited);
}

}  // namespace gyre::perf
