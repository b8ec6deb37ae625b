#include <cstdlib>
#include <new>

#include "test/catch.h"
#include "test/plugin/rim.h"

using namespace gyre;
using namespace gyre::plugin;
using Calls = std::vector<std::string>;

namespace {

size_t allocations = 0;  // by this program's own operator new, below

template <class Table>
struct Receive {
  OpenRim<Table>& rim;
  int n;
  void* data[10];
  typename Slots<Table>::Size sizes[10];
  int tags[10];
  void* memory[10];

  Receive(OpenRim<Table>& open, int count) : rim(open), n(count) {
    for (int i = 0; i < 10; ++i)
      data[i] = rim.data, sizes[i] = static_cast<typename Slots<Table>::Size>(10 * i), tags[i] = 100 + i,
      memory[i] = i % 2 == 0 ? rim.memory : nullptr;
  }
  ncclResult_t post(void** request) { return Slots<Table>::irecv(rim.receive_comm, n, data, sizes, tags, memory, request); }
};

}  // namespace

// Not inlined: next to the library's, g++ would take them for a mismatched pair.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return ++allocations, std::malloc(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

TEMPLATE_LIST_TEST_CASE("isend passes all on, and overwrites the request", "", Tables) {
  OpenRim<TestType> rim;
  using S = Slots<TestType>;
  void* request = rim.stale;
  CHECK(S::isend(rim.send_comm, rim.data, 64, 9, rim.memory, &request) == ncclSuccess);
  CHECK(request != rim.stale);
  CHECK(request != nullptr);
  CHECK(S::isend(rim.send_comm, nullptr, 0, 0, nullptr, &request) == ncclSuccess);
  rim.fake.not_yet = true;
  CHECK(S::isend(rim.send_comm, rim.data, 1, -1, rim.memory, &request) == ncclSuccess);
  CHECK(request == nullptr);
  CHECK(rim.fake.calls == Calls{"send 1 64 tag 9 memory 1", "send 1 0 from null tag 0 memory 0", "send 1 1 tag -1 memory 1"});
  if constexpr (S::has_size_t_messages) {
    CHECK(S::isend(rim.send_comm, rim.data, size_t{5} << 30, 2, rim.memory, &request) == ncclSuccess);
    CHECK(rim.fake.last() == "send 1 5368709120 tag 2 memory 1");
  }
}

TEMPLATE_LIST_TEST_CASE("isend refuses what it can't send, and leaves no request", "", Tables) {
  OpenRim<TestType> rim;
  using S = Slots<TestType>;
  void* request = rim.stale;
  CHECK(S::isend(nullptr, rim.data, 64, 9, rim.memory, &request) == ncclInvalidArgument);
  CHECK(request == nullptr);
  request = rim.stale;
  CHECK(S::isend(rim.send_comm, nullptr, 64, 9, rim.memory, &request) == ncclInvalidArgument);
  CHECK(request == nullptr);
  CHECK(logged().back().text == "NET/gyre: isend: data is NULL");
  CHECK(S::isend(rim.send_comm, rim.data, 64, 9, rim.memory, nullptr) == ncclInvalidArgument);
  if constexpr (!S::has_size_t_messages) {
    request = rim.stale;
    CHECK(S::isend(rim.send_comm, rim.data, -3, 9, rim.memory, &request) == ncclInvalidArgument);
    CHECK(request == nullptr);
    CHECK(logged().back().text == "NET/gyre: isend: a size is -3, must not be negative");
    CHECK(S::isend(rim.send_comm, rim.data, -3, 9, rim.memory, nullptr) == ncclInvalidArgument);
  }
  CHECK(rim.fake.calls.empty());
  rim.fake.error = Error{Code::remote, "gone"};
  request = rim.stale;
  CHECK(S::isend(rim.send_comm, rim.data, 64, 9, rim.memory, &request) == ncclRemoteError);
  CHECK(request == nullptr);
}

TEMPLATE_LIST_TEST_CASE("irecv passes groups of up to eight on", "", Tables) {
  OpenRim<TestType> rim;
  void* request = rim.stale;
  CHECK(Receive<TestType>(rim, 1).post(&request) == ncclSuccess);
  CHECK(request != rim.stale);
  CHECK(rim.fake.last() == "receive 2 of 1: 0 tags 100 memory 1");
  CHECK(Receive<TestType>(rim, 8).post(&request) == ncclSuccess);
  CHECK(rim.fake.last() == "receive 2 of 8: 0 10 20 30 40 50 60 70 tags 100 101 102 103 104 105 106 107 memory 1 0 1 0 1 0 1 0");
}

TEMPLATE_LIST_TEST_CASE("irecv overwrites the hint of an optional completion", "", Tables) {
  OpenRim<TestType> rim;
  const auto hint = reinterpret_cast<void*>(uintptr_t{NCCL_NET_OPTIONAL_RECV_COMPLETION});
  void* request = hint;
  CHECK(Receive<TestType>(rim, 1).post(&request) == ncclSuccess);
  CHECK(request != hint);
  rim.fake.not_yet = true;
  request = hint;
  CHECK(Receive<TestType>(rim, 1).post(&request) == ncclSuccess);
  CHECK(request == nullptr);
  rim.fake.error = Error{Code::remote, "gone"};
  request = hint;
  CHECK(Receive<TestType>(rim, 1).post(&request) == ncclRemoteError);
  CHECK(request == nullptr);
}

TEMPLATE_LIST_TEST_CASE("irecv refuses a wrong number of buffers and absent arrays", "", Tables) {
  OpenRim<TestType> rim;
  using S = Slots<TestType>;
  void* request = nullptr;
  for (const int n : {0, 9, -1}) {
    request = rim.stale;
    CHECK(Receive<TestType>(rim, n).post(&request) == ncclInvalidArgument);
    CHECK(request == nullptr);
    CHECK(logged().back().text == "NET/gyre: irecv: n is " + std::to_string(n) + ", must be from 1 to 8");
  }
  Receive<TestType> r(rim, 2);
  CHECK(S::irecv(nullptr, 1, r.data, r.sizes, r.tags, r.memory, &request) == ncclInvalidArgument);
  CHECK(S::irecv(rim.receive_comm, 1, nullptr, r.sizes, r.tags, r.memory, &request) == ncclInvalidArgument);
  CHECK(S::irecv(rim.receive_comm, 1, r.data, nullptr, r.tags, r.memory, &request) == ncclInvalidArgument);
  CHECK(logged().back().text == "NET/gyre: irecv: sizes is NULL");
  CHECK(S::irecv(rim.receive_comm, 1, r.data, r.sizes, nullptr, r.memory, &request) == ncclInvalidArgument);
  CHECK(S::irecv(rim.receive_comm, 1, r.data, r.sizes, r.tags, nullptr, &request) == ncclInvalidArgument);
  CHECK(r.post(nullptr) == ncclInvalidArgument);
  if constexpr (!S::has_size_t_messages) {
    r.sizes[1] = -4;
    request = rim.stale;
    CHECK(r.post(&request) == ncclInvalidArgument);
    CHECK(request == nullptr);
    CHECK(logged().back().text == "NET/gyre: irecv: a size is -4, must not be negative");
  }
  CHECK(rim.fake.calls.empty());
}

TEST_CASE("profilers' handles change nothing") {
  OpenRim<ncclNet_v12_t> rim;
  Receive<ncclNet_v12_t> r(rim, 2);
  void* handles[2] = {rim.stale, nullptr};
  void* request = nullptr;
  CHECK(ncclNetPlugin_v12.irecv(rim.receive_comm, 2, r.data, r.sizes, r.tags, r.memory, handles, &request) == ncclSuccess);
  CHECK(ncclNetPlugin_v10.irecv(rim.receive_comm, 2, r.data, r.sizes, r.tags, r.memory, nullptr, &request) == ncclSuccess);
  CHECK(ncclNetPlugin_v10.isend(rim.send_comm, rim.data, 1, 2, rim.memory, rim.stale, &request) == ncclSuccess);
  CHECK(rim.fake.calls[0] == rim.fake.calls[1]);
}

TEMPLATE_LIST_TEST_CASE("iflush passes all on, and may have nothing to wait for", "", Tables) {
  OpenRim<TestType> rim;
  const auto& table = Slots<TestType>::table();
  void* data[2] = {rim.data, rim.data};
  int sizes[2] = {0, 7};
  void* memory[2] = {nullptr, rim.memory};
  void* request = rim.stale;
  CHECK(table.iflush(rim.receive_comm, 2, data, sizes, memory, &request) == ncclSuccess);
  CHECK(request != rim.stale);
  rim.fake.not_yet = true;
  CHECK(table.iflush(rim.receive_comm, 1, data, sizes, memory, &request) == ncclSuccess);
  CHECK(request == nullptr);
  CHECK(rim.fake.calls == Calls{"flush 2 of 2: 0 7 memory 0 1", "flush 2 of 1: 0 memory 0"});
  rim.fake.calls.clear();
  sizes[1] = -1;
  request = rim.stale;
  CHECK(table.iflush(rim.receive_comm, 2, data, sizes, memory, &request) == ncclInvalidArgument);
  CHECK(request == nullptr);
  CHECK(table.iflush(rim.receive_comm, 0, data, sizes, memory, &request) == ncclInvalidArgument);
  CHECK(table.iflush(rim.receive_comm, 9, data, sizes, memory, &request) == ncclInvalidArgument);
  CHECK(table.iflush(nullptr, 1, data, sizes, memory, &request) == ncclInvalidArgument);
  CHECK(table.iflush(rim.receive_comm, 1, nullptr, sizes, memory, &request) == ncclInvalidArgument);
  CHECK(table.iflush(rim.receive_comm, 1, data, nullptr, memory, &request) == ncclInvalidArgument);
  CHECK(table.iflush(rim.receive_comm, 1, data, sizes, nullptr, &request) == ncclInvalidArgument);
  CHECK(table.iflush(rim.receive_comm, 1, data, sizes, memory, nullptr) == ncclInvalidArgument);
  CHECK(rim.fake.calls.empty());
}

TEMPLATE_LIST_TEST_CASE("test says whether a request is done, and the sizes where they are wanted", "", Tables) {
  OpenRim<TestType> rim;
  const auto& table = Slots<TestType>::table();
  void* request = nullptr;
  Receive<TestType>(rim, 2).post(&request);
  rim.fake.received = {3, 0};
  rim.fake.not_yet = true;
  int done = 5;
  int sizes[3] = {0, 0, 77};
  CHECK(table.test(request, &done, sizes) == ncclSuccess);
  CHECK(done == 0);
  CHECK(sizes[0] == 0);
  rim.fake.not_yet = false;
  CHECK(table.test(request, &done, sizes) == ncclSuccess);
  CHECK(done == 1);
  CHECK(sizes[0] == 3);
  CHECK(sizes[2] == 77);
  CHECK(table.test(request, &done, nullptr) == ncclSuccess);
  CHECK(rim.fake.last() == "test 1 without sizes");
  CHECK(table.test(nullptr, &done, sizes) == ncclInvalidArgument);
  CHECK(done == 0);
  CHECK(table.test(request, nullptr, sizes) == ncclInvalidArgument);
  rim.fake.error = Error{Code::remote, "10.0.0.1 is gone"};
  done = 1;
  CHECK(table.test(request, &done, sizes) == ncclRemoteError);
  CHECK(done == 0);
  CHECK(logged().back().text == "NET/gyre: test: 10.0.0.1 is gone");
}

TEMPLATE_LIST_TEST_CASE("memory is registered with its kind, for sends and receives", "", Tables) {
  OpenRim<TestType> rim;
  const auto& table = Slots<TestType>::table();
  void* memory = rim.stale;
  CHECK(table.regMr(rim.send_comm, rim.data, 64, NCCL_PTR_HOST, &memory) == ncclSuccess);
  CHECK(memory != rim.stale);
  CHECK(table.deregMr(rim.send_comm, memory) == ncclSuccess);
  CHECK(table.regMr(rim.receive_comm, rim.data, 5, NCCL_PTR_CUDA, &memory) == ncclSuccess);
  CHECK(rim.fake.calls == Calls{"register 1 64 host", "deregister 1 2", "register 2 5 cuda"});
  if constexpr (Slots<TestType>::has_dma_buf) {
    CHECK(table.regMrDmaBuf(rim.send_comm, rim.data, 63, NCCL_PTR_CUDA, 4096, 999, &memory) == ncclSuccess);
    CHECK(rim.fake.last() == "register 1 63 cuda by descriptor 999 at 4096");
    CHECK(table.regMrDmaBuf(rim.send_comm, rim.data, 63, NCCL_PTR_HOST, 4096, 999, &memory) == ncclSuccess);
    CHECK(rim.fake.last() == "register 1 63 host");
    CHECK(table.regMrDmaBuf(rim.send_comm, rim.data, 63, NCCL_PTR_DMABUF, 0, 999, &memory) == ncclInvalidArgument);
    CHECK(memory == nullptr);
  }
  if constexpr (Slots<TestType>::has_size_t_registration) {
    CHECK(table.regMr(rim.send_comm, rim.data, size_t{5} << 30, NCCL_PTR_HOST, &memory) == ncclSuccess);
    CHECK(rim.fake.last() == "register 1 5368709120 host");
  }
}

TEMPLATE_LIST_TEST_CASE("what can't be registered leaves no handle", "", Tables) {
  OpenRim<TestType> rim;
  const auto& table = Slots<TestType>::table();
  void* memory = rim.stale;
  CHECK(table.regMr(rim.send_comm, rim.data, 64, 3, &memory) == ncclInvalidArgument);
  CHECK(memory == nullptr);
  CHECK(logged().back().text == "NET/gyre: regMr: type is 3, must be 1 (host memory) or 2 (CUDA's)");
  CHECK(table.regMr(nullptr, rim.data, 64, NCCL_PTR_HOST, &memory) == ncclInvalidArgument);
  CHECK(table.regMr(rim.send_comm, nullptr, 64, NCCL_PTR_HOST, &memory) == ncclInvalidArgument);
  CHECK(table.regMr(rim.send_comm, rim.data, 64, NCCL_PTR_HOST, nullptr) == ncclInvalidArgument);
  if constexpr (!Slots<TestType>::has_size_t_registration) {
    memory = rim.stale;
    CHECK(table.regMr(rim.send_comm, rim.data, -1, NCCL_PTR_HOST, &memory) == ncclInvalidArgument);
    CHECK(memory == nullptr);
  }
  CHECK(rim.fake.calls.empty());
  rim.fake.error = Error{Code::system, "no memory to pin"};
  memory = rim.stale;
  CHECK(table.regMr(rim.send_comm, rim.data, 64, NCCL_PTR_HOST, &memory) == ncclSystemError);
  CHECK(memory == nullptr);
}

TEMPLATE_LIST_TEST_CASE("giving memory back succeeds whatever happens", "", Tables) {
  OpenRim<TestType> rim;
  const auto& table = Slots<TestType>::table();
  CHECK(table.deregMr(rim.send_comm, nullptr) == ncclSuccess);
  CHECK(rim.fake.calls.empty());
  CHECK(logged().empty());
  CHECK(table.deregMr(nullptr, rim.memory) == ncclSuccess);
  rim.fake.error = Error{Code::remote, "gone"};
  CHECK(table.deregMr(rim.send_comm, rim.memory) == ncclSuccess);
  CHECK(logged().size() == 2);
  CHECK(logged()[1].level == NCCL_LOG_WARN);
}

TEMPLATE_LIST_TEST_CASE("sends, receives and tests allocate and log nothing", "", Tables) {
  OpenRim<TestType> rim;
  using S = Slots<TestType>;
  Receive<TestType> r(rim, 8);
  rim.fake.silent = true;
  rim.fake.received = {1, 2, 3, 4, 5, 6, 7, 8};
  int sizes[8], done = 0, wrong = 0;
  void* request = nullptr;
  const size_t before = allocations;
  for (const bool not_yet : {false, true}) {
    rim.fake.not_yet = not_yet;
    wrong += S::isend(rim.send_comm, rim.data, 64, 9, rim.memory, &request) != ncclSuccess;
    wrong += r.post(&request) != ncclSuccess;
    if (not_yet) continue;
    rim.fake.not_yet = true;
    wrong += S::table().test(request, &done, sizes) != ncclSuccess;
    rim.fake.not_yet = false;
    wrong += S::table().test(request, &done, sizes) != ncclSuccess;
  }
  const size_t after = allocations;
  ::operator delete(::operator new(1));
  const size_t counted = allocations;
  CHECK(wrong == 0);
  CHECK(after - before == 0);
  CHECK(counted - after == 1);
  CHECK(logged().empty());
}
