// Flushes of GPU memory, where the GPU is some memory of this process. Not run on hardware.
#include "transport/verbs/flush.h"

#include <cerrno>

#include "test/catch.h"
#include "test/transport/fake_verbs.h"
#include "test/transport/loopback_address.h"
#include "transport/verbs.h"
#include "transport/verbs/registrations.h"

namespace gyre::test {
namespace {

using transport::DmaBuf;
using transport::MemoryKind;
using transport::Request;
using namespace transport::verbs;

struct Reader {
  explicit Reader(int count) {
    for (int i = 0; i < count; ++i) {
      fake.add_device("mlx5_" + std::to_string(i));
      opened.push_back(*Rail::open("mlx5_" + std::to_string(i), 1, {}, fake.sysfs()));
      rails.push_back(opened.back().get());
    }
    fake.add_gpu(gpu, true);
    registrations.emplace(rails, 0);
    flushes.emplace(rails);
    memory = *registrations->add({gpu, MemoryKind::cuda});
  }
  const Registered& registered() const { return static_cast<const Registered&>(*memory); }
  Result<Request*> start(size_t at = 0) { return flushes->start(registered(), gpu.data() + at); }
  bool ends(const Request& request) {
    for (int i = 0; i < 10000 && !request.done; ++i) {
      for (Rail* rail : rails) (void)rail->events();
      (void)flushes->progress();
    }
    return request.done;
  }

  FakeVerbs fake;
  std::vector<std::byte> gpu{4096};
  std::vector<std::unique_ptr<Rail>> opened;
  std::vector<Rail*> rails;
  std::optional<Registrations> registrations;
  std::unique_ptr<transport::Memory> memory;
  std::optional<Flushes> flushes;
};

}  // namespace

TEST_CASE("a flush is a read by every rail, and done when all have answered") {
  Reader reader(3);
  const int before = reader.fake.open_handles();
  reader.fake.hold(true);
  Request* flush = *reader.start();
  CHECK(reader.fake.counts().sends == 3);
  (void)reader.flushes->progress();
  CHECK(!flush->done);
  reader.fake.hold(false);
  REQUIRE(reader.ends(*flush));
  CHECK(flush->failure == nullptr);
  reader.flushes->release(flush);

  const int opened = reader.fake.open_handles();
  CHECK(opened > before);
  for (int i = 0; i < 1000; ++i) {
    flush = *reader.start(4095);
    REQUIRE(reader.ends(*flush));
    CHECK(flush->failure == nullptr);
    reader.flushes->release(flush);
  }
  CHECK(reader.fake.open_handles() == opened);
  reader.flushes.reset();
  CHECK(reader.fake.open_handles() == before);
}

TEST_CASE("flushes under way are bounded") {
  Reader reader(1);
  std::vector<Request*> all;
  for (int i = 0; i < 512; ++i) all.push_back(*reader.start());
  CHECK(reader.start().error().what == "512 flushes of GPU memory are under way");
  for (Request* flush : all) {
    REQUIRE(reader.ends(*flush));
    CHECK(flush->failure == nullptr);
    reader.flushes->release(flush);
  }
  CHECK(reader.start());
}

TEST_CASE("a flush that is given back early takes no other's answer") {
  Reader reader(1);
  reader.flushes->release(*reader.start());
  Request* flush = *reader.start();
  (void)reader.flushes->progress();
  REQUIRE(reader.ends(*flush));
  CHECK(flush->failure == nullptr);
}

TEST_CASE("rails whose port is down flush nothing, and do again when it is up") {
  Reader reader(2);
  Request* under_way = *reader.start();
  reader.fake.cut("mlx5_1");
  REQUIRE(reader.ends(*under_way));
  CHECK(under_way->failure == nullptr);
  auto sent = reader.fake.counts().sends;
  Request* flush = *reader.start();
  CHECK(reader.fake.counts().sends == sent + 1);
  REQUIRE(reader.ends(*flush));
  CHECK(flush->failure == nullptr);

  reader.fake.restore("mlx5_1");
  (void)reader.rails[1]->events();
  sent = reader.fake.counts().sends;
  flush = *reader.start();
  CHECK(reader.fake.counts().sends == sent + 2);
  REQUIRE(reader.ends(*flush));
  CHECK(flush->failure == nullptr);
}

TEST_CASE("a flush without any port fails") {
  Reader reader(1);
  Request* under_way = *reader.start();
  reader.fake.cut("mlx5_0");
  REQUIRE(reader.ends(*under_way));
  CHECK(std::string(under_way->failure).find("mlx5_0:1 to itself, to flush GPU memory: queue pair ") == 0);
  CHECK(reader.start().error().what == "GPU memory can't be flushed: no port is up");
}

TEST_CASE("a flush of memory that is not registered any more fails, and the next does not") {
  Reader reader(2);
  reader.fake.hold(true);
  Request* flush = *reader.start();
  auto other = *reader.registrations->add({std::span(reader.gpu).first(64), MemoryKind::cuda});
  reader.memory = std::make_unique<transport::Memory>();
  other.reset();
  reader.fake.hold(false);
  REQUIRE(reader.ends(*flush));
  CHECK(std::string(flush->failure).find("remote access error") != std::string::npos);
  reader.memory = *reader.registrations->add({reader.gpu, MemoryKind::cuda});
  flush = *reader.start();
  REQUIRE(reader.ends(*flush));
  CHECK(flush->failure == nullptr);
}

TEST_CASE("no call of a flush may fail without a reason, and what lies elsewhere is an error") {
  for (const char* call : {"create_cq", "reg_mr", "create_qp", "modify_qp", "post_send"}) {
    Reader reader(1);
    reader.fake.fail(call, EINVAL);
    INFO(call);
    CHECK(reader.start().error().what.find(std::string("ibv_") + call) != std::string::npos);
    Request* flush = *reader.start();
    CHECK(reader.ends(*flush));
  }
  Reader reader(1);
  CHECK(!reader.start(4096));
}

TEST_CASE("a worker flushes GPU memory only") {
  FakeVerbs fake;
  fake.add_device("mlx5_0");
  std::vector<std::byte> memory(8192);
  fake.add_gpu(std::span(memory).subspan(4096), false);
  transport::VerbsWay way;
  way.ports = {{"mlx5_0", 1}};
  way.address = loopback_address(1);
  way.sysfs = fake.sysfs();
  const auto worker = *transport::open_verbs_worker({}, way);
  const auto host = *worker->register_memory(std::span(memory).first(4096), MemoryKind::host);
  const auto empty = *worker->register_memory({}, MemoryKind::cuda);
  CHECK(!worker->register_memory(std::span(memory).subspan(4096), MemoryKind::cuda));
  const auto offset = reinterpret_cast<uintptr_t>(memory.data()) % 4096;
  const auto gpu = *worker->register_dmabuf(std::span(memory).subspan(4096), DmaBuf{5, offset});
  CHECK(*worker->flush(*host, memory.data()) == nullptr);
  CHECK(*worker->flush(*empty, memory.data()) == nullptr);
  Request* flush = *worker->flush(*gpu, memory.data() + 4096);
  REQUIRE(flush != nullptr);
  for (int i = 0; i < 100 && !flush->done; ++i) (void)worker->progress();
  CHECK(flush->done);
  CHECK(flush->failure == nullptr);
  worker->release_flush(flush);
}

}  // namespace gyre::test
