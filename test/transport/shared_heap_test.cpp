#include "transport/shared_heap.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "test/catch.h"
#include "test/text.h"

using namespace gyre;
using gyre::test::contains;
using gyre::test::error_of;
using transport::SharedHeap;
using transport::SharedMemory;

TEST_CASE("memory of the shared heap is zeros, aligned to a page, and another mapping of it shows what is written") {
  auto& heap = SharedHeap::of_process();
  auto* data = static_cast<char*>(*heap.allocate(10000));
  CHECK(reinterpret_cast<uintptr_t>(data) % 4096 == 0);
  CHECK(std::count(data, data + 10000, 0) == 10000);
  const auto segment = heap.find(data + 9999, 1);
  REQUIRE(segment);
  const auto other = SharedMemory::open(heap.address(segment->number));
  REQUIRE(other);
  std::strcpy(data + 5000, "hello");
  CHECK(std::strcmp(reinterpret_cast<const char*>((*other)->data()) + 5000, "hello") == 0);
  CHECK(heap.release(data));
}

TEST_CASE("the shared heap knows what lies in it and what does not") {
  auto& heap = SharedHeap::of_process();
  auto* a = static_cast<std::byte*>(*heap.allocate(4096));
  auto* b = static_cast<std::byte*>(*heap.allocate(0));
  int on_the_stack = 0;
  CHECK(heap.find(a, 4096));
  CHECK(heap.find(a + 4096, 0));
  CHECK(!heap.find(a, 4097));
  CHECK(!heap.find(a + 1, 4096));
  CHECK(heap.find(b, 1));
  CHECK(!heap.find(&on_the_stack, sizeof on_the_stack));
  CHECK(heap.find(a, 1)->number != heap.find(b, 1)->number);
  CHECK(heap.release(a));
  CHECK(!heap.find(a, 1));
  CHECK(heap.release(b));
}

TEST_CASE("a segment that was released has no address, and its number is not used again") {
  auto& heap = SharedHeap::of_process();
  void* first = *heap.allocate(100);
  const uint64_t number = heap.find(first, 1)->number;
  const uint64_t changes = heap.changes();
  CHECK(heap.release(first));
  CHECK(heap.changes() > changes);
  CHECK(heap.address(number).empty());
  void* second = *heap.allocate(100);
  CHECK(heap.find(second, 1)->number > number);
  CHECK(heap.release(second));
}

TEST_CASE("what the shared heap has not given cannot be released") {
  auto& heap = SharedHeap::of_process();
  void* data = *heap.allocate(100);
  CHECK(contains(error_of(heap.release(static_cast<std::byte*>(data) + 8)), "was not allocated here"));
  CHECK(heap.release(data));
  CHECK(contains(error_of(heap.release(data)), "or was released already"));
  CHECK(contains(error_of(Status(heap.allocate(SIZE_MAX).error())), "are too many"));
}

TEST_CASE("opened memory holds no descriptor, and nobody can shrink it") {
  const auto memory = *SharedMemory::create(8192);
  const auto descriptors = [] {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  };
  const auto before = descriptors();
  const auto opened = SharedMemory::open(memory->address());
  REQUIRE(opened);
  CHECK(descriptors() == before);
  const std::string address = memory->address();
  const std::string descriptor = address.substr(address.find(':') + 1, address.find(':', address.find(':') + 1) - address.find(':') - 1);
  CHECK(ftruncate(static_cast<int>(std::stoul(descriptor, nullptr, 16)), 4096) == -1);
  CHECK(errno == EPERM);
}
