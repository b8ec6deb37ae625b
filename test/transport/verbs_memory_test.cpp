// Registrations: shared, counted, bounded; GPU memory by both its ways. Not run on hardware: the GPU here is some memory of this process.
#include <atomic>
#include <cerrno>
#include <thread>

#include "test/catch.h"
#include "test/transport/fake_verbs.h"
#include "transport/verbs.h"
#include "transport/verbs/checks.h"
#include "transport/verbs/registrations.h"

namespace gyre::test {
namespace {

using transport::DmaBuf;
using transport::Memory;
using transport::MemoryKind;
using namespace transport::verbs;

struct Machine {
  explicit Machine(int count = 1, uint64_t most_bytes = 0, PathOptions options = {}) {
    for (int i = 0; i < count; ++i) {
      fake.add_device("mlx5_" + std::to_string(i));
      opened.push_back(*Rail::open("mlx5_" + std::to_string(i), 1, options, fake.sysfs()));
      rails.push_back(opened.back().get());
    }
    registrations.emplace(rails, most_bytes);
  }
  std::span<std::byte> part(size_t from, size_t bytes) { return std::span(memory).subspan(from, bytes); }
  std::unique_ptr<Memory> add(size_t from, size_t bytes) { return *registrations->add({part(from, bytes)}); }
  std::string why(const Range& range) { return registrations->add(range).error().what; }

  FakeVerbs fake;
  std::vector<std::unique_ptr<Rail>> opened;
  std::vector<Rail*> rails;
  std::optional<Registrations> registrations;
  std::vector<std::byte> memory{1 << 20};
};

uint32_t key(const std::unique_ptr<Memory>& memory, size_t rail = 0) { return static_cast<const Registered&>(*memory).remote_key(rail); }

}  // namespace

TEST_CASE("memory is registered on each rail, and on none when it has been given back") {
  Machine machine(3);
  auto memory = machine.add(0, 4096);
  CHECK(machine.fake.regions().size() == 3);
  CHECK(key(memory, 0) != key(memory, 1));
  CHECK(machine.registrations->pinned().bytes == 4096);
  memory.reset();
  CHECK(machine.fake.regions().empty());
  CHECK(machine.registrations->pinned().bytes == 0);
}

TEST_CASE("no bytes have a registration that can be named, and take nothing") {
  Machine machine;
  const auto memory = *machine.registrations->add({});
  CHECK(static_cast<const Registered&>(*memory).local_key(0) == 0);
  CHECK(machine.fake.regions().empty());
}

TEST_CASE("a part of what is registered shares it, in whatever order they are given back") {
  Machine machine;
  auto whole = machine.add(0, 65536);
  auto part = machine.add(4096, 100), same = machine.add(0, 65536), longer = machine.add(4096, 65536);
  CHECK(key(part) == key(whole));
  CHECK(key(same) == key(whole));
  CHECK(key(longer) != key(whole));
  CHECK(machine.registrations->pinned().bytes == 2 * 65536);
  CHECK(machine.registrations->pinned().registrations == 2);
  whole.reset();
  same.reset();
  CHECK(machine.registrations->pinned().registrations == 2);
  part.reset();
  longer.reset();
  CHECK(machine.fake.regions().empty());
}

TEST_CASE("memory that was given back, freed and mapped again is registered again") {
  Machine machine;
  auto whole = machine.add(0, 65536);
  auto part = machine.add(4096, 100);
  const auto old = key(whole);
  whole.reset();
  // The part keeps the old registration alive, of which all but the part may be other memory now.
  auto again = machine.add(0, 65536), outside = machine.add(8192, 100);
  CHECK(key(again) != old);
  CHECK(key(outside) == key(again));
  CHECK(key(machine.add(4100, 8)) != 0);
  again.reset();
  outside.reset();
  CHECK(key(machine.add(4100, 8)) == old);
}

TEST_CASE("registered bytes are bounded, and the error says by what") {
  Machine machine(2, 10000);
  auto first = machine.add(0, 6000);
  auto part = machine.add(1000, 5000);
  CHECK(machine.why({machine.part(8192, 4001)}) ==
        "4001 bytes can't be registered: GYRE_PINNED_BYTES=10000, and 6000 bytes in 1 registrations are in use");
  auto second = machine.add(8192, 4000);
  CHECK(!machine.registrations->add({machine.part(16384, 1)}));
  first.reset();
  CHECK(!machine.registrations->add({machine.part(16384, 1)}));
  part.reset();
  CHECK(machine.registrations->add({machine.part(16384, 1)}));
}

TEST_CASE("a registration that fails on one rail leaves none on the others") {
  Machine machine(2);
  machine.fake.fail("reg_mr", ENOMEM, 2);
  const auto why = machine.why({machine.part(0, 4096)});
  CHECK(why.find("mlx5_1:1: 4096 bytes can't be registered: ") == 0);
  CHECK(why.find("ulimit -l") != std::string::npos);
  CHECK(why.find("; 0 bytes in 0 registrations are in use") != std::string::npos);
  CHECK(machine.fake.regions().empty());
  CHECK(machine.add(0, 4096));
}

TEST_CASE("several threads register and give back") {
  Machine machine;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 500; ++i) {
        const size_t from = (i * 7 + t) % 32 * 1024;
        auto memory = machine.add(from, 4096), inner = machine.add(from + 64, 128);
        if (key(memory) == 0 || key(inner) == 0) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(machine.fake.regions().empty());
  CHECK(machine.registrations->pinned().bytes == 0);
}

TEST_CASE("what is polled is in strict order, what is not is in NCCL's") {
  Machine machine;
  const auto relaxed = [&] { return (machine.fake.regions().back().access & IBV_ACCESS_RELAXED_ORDERING) != 0; };
  const auto memory = machine.add(0, 4096);
  CHECK(relaxed());
  const auto polled = *Registered::add(machine.rails, machine.part(8192, 64));
  CHECK(!relaxed());
  PathOptions strict;
  strict.relaxed_ordering = false;
  machine.opened.push_back(*Rail::open("mlx5_0", 1, strict, machine.fake.sysfs()));
  const auto region = *register_range(*machine.opened.back(), {machine.part(0, 64)});
  CHECK(!relaxed());
}

TEST_CASE("GPU memory is registered by its DMA-BUF") {
  Machine machine(2);
  auto* page = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(machine.memory.data()) + 4095) & ~uintptr_t{4095});
  machine.fake.add_gpu({page, 65536}, false);
  const auto memory = *machine.registrations->add({{page, 65536}, MemoryKind::cuda, DmaBuf{17, 8192}});
  const auto regions = machine.fake.regions();
  REQUIRE(regions.size() == 2);
  CHECK(regions[1].fd == 17);
  CHECK(regions[1].offset == 8192);
  CHECK(regions[1].bytes == 65536);
  CHECK(static_cast<const Registered&>(*memory).kind() == MemoryKind::cuda);
}

TEST_CASE("the offset of a DMA-BUF is that of the memory, or of the page in which it begins") {
  Machine machine;
  auto* page = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(machine.memory.data()) + 4095) & ~uintptr_t{4095});
  {
    const auto of_memory = *machine.registrations->add({{page + 100, 1000}, MemoryKind::cuda, DmaBuf{17, 100}});
    CHECK(machine.fake.regions().back().address == reinterpret_cast<uintptr_t>(page + 100));
    CHECK(machine.fake.regions().back().bytes == 1000);
  }
  const auto of_page = *machine.registrations->add({{page + 100, 1000}, MemoryKind::cuda, DmaBuf{17, 0}});
  CHECK(machine.fake.regions().back().address == reinterpret_cast<uintptr_t>(page));
  CHECK(machine.fake.regions().back().bytes == 1100);
}

TEST_CASE("GPU memory is registered by its address where DMA-BUF is not known") {
  FakeVerbs fake;
  FakeTraits old;
  old.dmabuf = false;
  fake.add_device("mlx5_0", old);
  const auto rail = *Rail::open("mlx5_0", 1, {}, fake.sysfs());
  std::vector<std::byte> gpu(4096), other(4096);
  fake.add_gpu(other, false);
  CHECK(!has_peer_memory(fake.sysfs()));
  fake.add_gpu(gpu, true);
  CHECK(has_peer_memory(fake.sysfs()));
  CHECK(!knows_dmabuf(rail->domain()));
  CHECK(register_range(*rail, {gpu, MemoryKind::cuda, DmaBuf{17, 0}}));
  CHECK(register_range(*rail, {gpu, MemoryKind::cuda}));
  CHECK(register_range(*rail, {other, MemoryKind::cuda, DmaBuf{17, 0}}).error().what ==
        "mlx5_0:1: 4096 bytes of GPU memory can't be registered: not as DMA-BUF (the NIC's driver or the kernel does not take it), and not "
        "by "
        "address (Bad address; is the module loaded? modprobe nvidia-peermem)");
  CHECK(register_range(*rail, {other, MemoryKind::cuda}).error().what.find("not as DMA-BUF (none was given)") != std::string::npos);
}

TEST_CASE("how a device reaches GPU memory is found without a rail") {
  FakeVerbs fake;
  fake.add_device("mlx5_0");
  FakeTraits old;
  old.dmabuf = false;
  fake.add_device("mlx5_1", old);
  using transport::verbs_gpu_memory;
  CHECK(verbs_gpu_memory("mlx5_0", fake.sysfs()).dmabuf);
  CHECK(!verbs_gpu_memory("mlx5_0", fake.sysfs()).peer_memory);
  const std::vector<std::byte> gpu(4096);
  fake.add_gpu(gpu, true);
  CHECK(!verbs_gpu_memory("mlx5_1", fake.sysfs()).dmabuf);
  CHECK(verbs_gpu_memory("mlx5_1", fake.sysfs()).peer_memory);
  CHECK(!verbs_gpu_memory("mlx5_2", fake.sysfs()).peer_memory);
  CHECK(fake.open_handles() == 0);
}

TEST_CASE("DMA-BUF is known where the call minds the descriptor") {
  FakeVerbs fake;
  fake.add_device("mlx5_0");
  const auto rail = *Rail::open("mlx5_0", 1, {}, fake.sysfs());
  CHECK(knows_dmabuf(rail->domain()));
  std::vector<std::byte> gpu(4096);
  CHECK(register_range(*rail, {gpu, MemoryKind::cuda, DmaBuf{-1, 0}}).error().what.find("mlx5_0:1: ibv_reg_dmabuf_mr of 4096 bytes") == 0);
}

TEST_CASE("a limit of locked memory that is too low is told with what raises it") {
  CHECK(lock_warning({UINT64_MAX, false}).empty());
  CHECK(lock_warning({uint64_t{1} << 30U, true}).empty());
  CHECK(lock_warning({8 << 20, false}).empty());
  const auto low = lock_warning({8 << 20, true});
  for (const char* part : {"8192 KiB", "ulimit -l unlimited", "limits.d", "LimitMEMLOCK=infinity", "--ulimit memlock=-1"})
    CHECK(low.find(part) != std::string::npos);
  CHECK(why_not_locked({65536, true}).find("the limit of locked memory is 64 KiB; ulimit -l unlimited") == 0);
}

TEST_CASE("why a device can't be opened, with what mends it") {
  FakeVerbs fake;
  fake.add_device("mlx5_0");
  const auto why = [&](const std::string& device) { return Rail::open(device, 1, {}, fake.sysfs()).error().what; };
  fake.fail("open_device", EACCES);
  CHECK(why("mlx5_0").find("mlx5_0: no permission for /dev/infiniband/uverbs*: its group is often rdma (usermod -aG rdma $USER") == 0);
  std::filesystem::create_directories(fake.sysfs() + "/class/infiniband/mlx5_0/device/infiniband_verbs/uverbs3");
  fake.fail("open_device", ENOENT);
  CHECK(why("mlx5_0") ==
        "mlx5_0: /dev/infiniband/uverbs3 is not there: modprobe ib_uverbs; in a container: docker run --device /dev/infiniband");
  CHECK(why("mlx5_9") == "there is no RDMA device mlx5_9; there are mlx5_0");
  std::filesystem::create_directories(fake.sysfs() + "/class/infiniband/mlx5_9");
  CHECK(why("mlx5_9").find("the system has mlx5_9, and libibverbs does not: its provider is missing (apt-get install ibverbs-providers") ==
        0);
}

TEST_CASE("a device of small limits gives what it has") {
  FakeVerbs fake;
  FakeTraits small;
  small.max_cqe = 128;
  small.max_qp_wr = 64;
  fake.add_device("mlx5_0", small);
  const auto rail = *Rail::open("mlx5_0", 1, {}, fake.sysfs());
  const auto queue = *rail->make_queue(1000);
  CHECK(queue->cqe == 128);
  Rail::Limits limits{1000, 20, 0};
  REQUIRE(rail->make_pair_on(queue.get(), limits));
  CHECK(limits.sends == 64);
  CHECK(limits.receives == 20);
}

}  // namespace gyre::test
