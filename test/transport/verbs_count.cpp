// Counts what messages of one size cost over devices inside this program, through the net plugin's core as NCCL calls it: one message at a
// time, whose completion is there when its test is called. One line of JSON for a size. perf/peers/count-verbs runs it under callgrind,
// which collects within isend() and completing_test() only.
//
//   verbs-count RAILS MESSAGES BYTES...
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "plugin/process.h"
#include "test/transport/fake_verbs.h"
#include "test/transport/loopback_address.h"
#include "transport/verbs.h"

namespace {

using namespace gyre;
using namespace gyre::plugin;

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "verbs-count: {}\n", why);
  std::exit(1);
}

template <class T>
T got(Result<T> result) {
  if (!result) give_up(result.error().what);
  return std::move(*result);
}

class FakeProvider final : public Provider {
 public:
  explicit FakeProvider(transport::VerbsWay way) : way_(std::move(way)) {}
  Result<std::vector<transport::NetDevice>> devices(const Config&) override {
    transport::NetDevice device;
    device.name = way_.ports[0].device;
    device.interface = "lo";
    device.address = way_.address;
    device.guid = 1;
    return std::vector{device};
  }
  bool cuda() override { return false; }
  std::vector<Way> ways(const std::vector<transport::NetDevice>&) override { return {{WayKind::verbs, "verbs"}}; }
  Result<std::unique_ptr<transport::Worker>> open(const std::vector<transport::NetDevice>&, WayKind) override {
    return transport::open_verbs_worker({max_requests * max_grouped / 2, 4096}, way_);
  }

 private:
  transport::VerbsWay way_;
};

struct Side {
  Side(test::FakeVerbs& fake, const std::string& prefix, int rails) : process(std::make_unique<FakeProvider>(way(fake, prefix, rails))) {
    context = got(process.open(1, -1));
  }
  ~Side() { process.finalize(context); }
  static transport::VerbsWay way(test::FakeVerbs& fake, const std::string& prefix, int rails) {
    transport::VerbsWay way;
    way.sysfs = fake.sysfs();
    way.address = test::loopback_address(1);
    for (int i = 0; i < rails; ++i) {
      fake.add_device(prefix + std::to_string(i));
      way.ports.push_back({prefix + std::to_string(i), 1});
    }
    return way;
  }
  Process process;
  Context* context = nullptr;
};

// What callgrind looks at, by name.
extern "C" [[gnu::noinline]] Request* counted_isend(Comm* comm, const std::byte* data, size_t bytes, const Memory* memory) {
  auto request = comm->send(data, bytes, 0, memory);
  return request ? *request : nullptr;
}
extern "C" [[gnu::noinline]] bool counted_test(Request* request) {
  const auto done = request->comm->test(*request, nullptr);
  return done && *done;
}

void count(test::FakeVerbs& fake, Comm& sends, Comm& receives, size_t bytes, int messages) {
  std::vector<std::byte> from(bytes + 1), to(bytes + 1);
  auto* sent_memory = got(sends.register_memory(from.data(), from.size(), MemoryKind::host));
  auto* received_memory = got(receives.register_memory(to.data(), to.size(), MemoryKind::host));
  void* place = to.data();
  void* memory = received_memory;
  const int tag = 0;
  const auto before = fake.counts();
  int late = 0;
  for (int i = 0; i < messages; ++i) {
    auto* receive = got(receives.receive({{&place, 1}, {&bytes, 1}, {&tag, 1}, &memory}));
    if (!receive || got(receives.test(*receive, nullptr))) give_up("a receive is done that nobody has sent to");
    Request* send = counted_isend(&sends, from.data(), bytes, sent_memory);
    if (!send) give_up("a receive is posted, and isend does not find it");
    while (!got(receives.test(*receive, nullptr))) continue;
    while (!counted_test(send)) ++late;
  }
  const auto after = fake.counts();
  const auto each = [&](uint64_t test::FakeCounts::*count) { return static_cast<double>(after.*count - before.*count) / messages; };
  using C = test::FakeCounts;
  fmt::print(R"({{"bytes": {}, "messages": {}, "work_requests": {:.3f}, "signaled": {:.3f}, "inlined": {:.3f}, "receives": {:.3f}, )"
             R"("completions": {:.3f}, "wire_bytes": {:.1f}, "late": {}}})"
             "\n",
             bytes, messages, each(&C::sends), each(&C::signaled), each(&C::inlined), each(&C::receives), each(&C::completions),
             each(&C::bytes), late);
  (void)sends.deregister(sent_memory);
  (void)receives.deregister(received_memory);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) give_up("usage: verbs-count RAILS MESSAGES BYTES...");
  test::FakeVerbs fake;
  const int rails = std::atoi(argv[1]);
  Side a(fake, "a", rails), b(fake, "b", rails);
  std::array<std::byte, handle_bytes> handle{};
  auto* listener = got(b.process.listen(b.context, 0, Handle(handle)));
  Comm *sends = nullptr, *receives = nullptr;
  while (!sends || !receives) {
    if (!sends) sends = got(a.process.connect(a.context, 0, Handle(handle)));
    if (!receives) receives = got(b.process.accept(listener));
    std::this_thread::yield();
  }
  for (int i = 3; i < argc; ++i) count(fake, *sends, *receives, std::strtoull(argv[i], nullptr, 10), std::atoi(argv[2]));
  a.process.close(sends);
  b.process.close(receives);
  b.process.close(listener);
}
