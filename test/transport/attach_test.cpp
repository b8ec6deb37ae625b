// Copies from the memory of other processes, and of this one.
#include "transport/attach.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <numeric>
#include <vector>

#include "test/catch.h"
#include "test/text.h"

using namespace gyre;
using namespace gyre::transport;
using gyre::test::contains;

namespace {

uint64_t place(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

}  // namespace

TEST_CASE("attached memory is read by its addresses there") {
  const ProcessAddress address = ProcessAddress::self();
  std::vector<int> data(100'000);
  std::iota(data.begin(), data.end(), 0);
  const pid_t child = ::fork();  // has the same memory, as it is now
  if (child == 0) {
    ::alarm(60);
    ::pause();
    ::_exit(0);
  }
  const auto process = Attached::open({static_cast<uint64_t>(child), address.at, address.word});
  REQUIRE(process);
  std::vector<int> found(data.size());
  CHECK(process->read(found.data(), place(data.data()), found.size() * sizeof(int)));
  CHECK(found == data);
  data[10] = -1;
  CHECK(process->read(found.data(), place(&data[10]), sizeof(int)));
  CHECK(found[0] == 10);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(contains(process->read(found.data(), place(data.data()), 4).error().what, "No such process"));
}

TEST_CASE("what is not there, and another process of the same number, is an error") {
  const ProcessAddress address = ProcessAddress::self();
  const auto own = Attached::open(address);
  REQUIRE(own);
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  auto* pages = static_cast<std::byte*>(::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(::mprotect(pages + page, page, PROT_NONE) == 0);
  std::vector<std::byte> found(2 * page);
  CHECK(own->read(found.data(), place(pages), page));
  CHECK(own->read(found.data(), place(pages), page + 1).error().what == "process_vm_readv: Bad address, 1 bytes left");
  CHECK(own->read(found.data(), 0, 0));
  ::munmap(pages, 2 * page);
  CHECK(contains(Attached::open({address.pid, address.at, address.word + 1}).error().what, "is another"));
  CHECK(contains(Attached::open({address.pid, 1, address.word}).error().what, "Bad address"));
}
