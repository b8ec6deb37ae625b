#include "transport/shm.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "test/catch.h"
#include "test/text.h"
#include "test/transport/fifo_traffic.h"
#include "transport/shared_memory.h"

using namespace gyre;
using namespace gyre::transport;
using test::contains;

namespace {

/// An endpoint that is ready, or null when it can't be.
std::unique_ptr<Endpoint> accepted(Listener& listener) {
  for (;;) {
    auto endpoint = listener.accept();
    if (!endpoint) return nullptr;
    if (*endpoint != nullptr) return *std::move(endpoint);
    ::sched_yield();
  }
}
bool becomes_ready(Endpoint& endpoint) {
  for (;;) {
    const auto ready = endpoint.ready();
    if (!ready || *ready) return static_cast<bool>(ready);
    ::sched_yield();
  }
}

struct ShmPair {
  explicit ShmPair(Slots slots)
      : worker(*open_shm_worker(slots)), listener(*worker->listen()), left(*worker->connect(listener->address(), "from left")) {
    posted = *left->ready();
    right = *listener->accept();
  }
  std::unique_ptr<Worker> worker;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Endpoint> left, right;
  bool posted;  ///< what the connecting side says before it is accepted
};

std::string refusal(const std::string& address) {
  const auto memory = SharedMemory::open(address);
  return memory ? "" : memory.error().what;
}

/// "pid:fd:secret:bytes" with another field.
std::string with_field(std::string address, int field, const std::string& value) {
  size_t begin = 0;
  for (int i = 0; i < field; ++i) begin = address.find(':', begin) + 1;
  const size_t end = std::min(address.find(':', begin), address.size());
  return address.replace(begin, end - begin, value);
}

}  // namespace

TEST_CASE("shared memory: what one writes the other reads at the address, starting from zeros") {
  const auto mine = *SharedMemory::create(10000);
  CHECK(mine->bytes() == 10000);
  CHECK(mine->address().size() <= 80);
  CHECK(reinterpret_cast<uintptr_t>(mine->data()) % 4096 == 0);
  const auto other = *SharedMemory::open(mine->address());
  CHECK(other->bytes() == 10000);
  CHECK(std::all_of(other->data(), other->data() + 10000, [](std::byte b) { return b == std::byte{0}; }));
  mine->data()[9999] = std::byte{7};
  CHECK(other->data()[9999] == std::byte{7});
}

TEST_CASE("shared memory: it stays with who opened it when its creator goes") {
  auto mine = *SharedMemory::create(100);
  const auto other = *SharedMemory::open(mine->address());
  const std::string address = mine->address();
  mine->data()[0] = std::byte{7};
  mine.reset();
  CHECK(other->data()[0] == std::byte{7});
  CHECK(contains(refusal(address), "shm: "));
}

TEST_CASE("shared memory: text that is no address is refused") {
  for (const std::string text : {"", ":", "x", "1:2:3", "1:2:3:4:5", "1:2:3:4x", "-1:2:3:4", "1:2:fffffffffffffffff:4"}) {
    CHECK(refusal(text) == "shm: '" + text + "' is not an address of shared memory");
  }
}

TEST_CASE("shared memory: another secret, another size and another descriptor are refused") {
  const auto mine = *SharedMemory::create(4096);
  const std::string address = mine->address();
  CHECK(refusal(address).empty());
  CHECK(contains(refusal(with_field(address, 2, "1")), "is not the peer's memory"));
  CHECK(contains(refusal(with_field(address, 3, "1000")), "is not the peer's memory"));
  CHECK(contains(refusal(with_field(address, 3, "10")), "is not the peer's memory"));
  CHECK(contains(refusal(with_field(address, 1, "ffff")), "shm: cannot open /proc/"));
  CHECK(contains(refusal(with_field(address, 0, "7ffffff0")), "No such file or directory"));
  const auto same_size = *SharedMemory::create(4096);
  const std::string other_descriptor = same_size->address().substr(0, same_size->address().find(':', same_size->address().find(':') + 1));
  CHECK(contains(refusal(other_descriptor + address.substr(address.find(':', address.find(':') + 1))), "is not the peer's memory"));
}

TEST_CASE("shared memory: a stranger's file is refused, whatever it is") {
  const auto mine = *SharedMemory::create(4096);
  const auto at = [&](int fd) { return with_field(mine->address(), 1, fmt::format("{:x}", fd)); };
  const UniqueFd zeros(::memfd_create("zeros", MFD_CLOEXEC));
  REQUIRE(::ftruncate(zeros.get(), 8192) == 0);
  CHECK(contains(refusal(at(zeros.get())), "is not the peer's memory"));
  const UniqueFd empty(::memfd_create("empty", MFD_CLOEXEC));
  CHECK(contains(refusal(at(empty.get())), "is not the peer's memory"));
  const UniqueFd device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  CHECK(contains(refusal(at(device.get())), "is not the peer's memory"));
  const UniqueFd directory(::open("/", O_RDONLY | O_CLOEXEC));
  CHECK(contains(refusal(at(directory.get())), "shm: cannot open"));
}

TEST_CASE("shared memory: a part is whole pages of it, and nothing beyond its end") {
  const auto mine = *SharedMemory::create(3 * 4096);
  const auto part = *SharedMemory::open_part(mine->address(), 4096, 8192);
  CHECK(part->bytes() == 8192);
  mine->data()[4096] = std::byte{7};
  part->data()[8191] = std::byte{8};
  CHECK(part->data()[0] == std::byte{7});
  CHECK(mine->data()[3 * 4096 - 1] == std::byte{8});
  constexpr size_t most = SIZE_MAX;
  for (const auto& [offset, bytes] :
       {std::pair<size_t, size_t>{4096, 8193}, {8192, 8192}, {100, 4096}, {4096, 0}, {most - 4095, 4096}, {4096, most - 4095}}) {
    INFO(offset << " " << bytes);
    CHECK_FALSE(SharedMemory::open_part(mine->address(), offset, bytes));
  }
  CHECK_FALSE(SharedMemory::open_part(with_field(mine->address(), 2, "1"), 4096, 4096));
}

TEST_CASE("shm: connections that were announced lie in one memory, and each works until it goes") {
  const auto open_files = [] {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  };
  auto worker = *open_shm_worker({2, 4096});
  const auto listener = *worker->listen();
  const auto before = open_files();
  worker->will_connect(5);
  std::vector<std::unique_ptr<Endpoint>> left, right;
  for (int i = 0; i < 7; ++i) {
    left.push_back(*worker->connect(listener->address(), std::to_string(i)));
    CHECK_FALSE(*left.back()->ready());
    right.push_back(accepted(*listener));
    CHECK(open_files() == before + (i < 5 ? 1 : i - 3));  // those that were not have one each
  }
  worker.reset();
  left.erase(left.begin());
  right.erase(right.begin());
  for (size_t i = 0; i < left.size(); ++i) {
    CHECK(right[i]->hello() == std::to_string(i + 1));
    CHECK(test::send(left[i]->fifo(), i, test::message(1, i, 4096)));
  }
  for (size_t i = 0; i < left.size(); ++i) CHECK(test::is(right[i]->fifo().front(), i, test::message(1, i, 4096)));
}

TEST_CASE("shm: a connection is ready once it is accepted, with the hello on both sides") {
  ShmPair p({2, 4096});
  CHECK_FALSE(p.posted);
  REQUIRE(p.right != nullptr);
  CHECK(*p.left->ready());
  CHECK(*p.right->ready());
  CHECK(p.left->hello() == "from left");
  CHECK(p.right->hello() == "from left");
  CHECK(*p.listener->accept() == nullptr);
}

TEST_CASE("shm: a hello has up to 64 bytes") {
  const auto worker = *open_shm_worker({2, 4096});
  const auto listener = *worker->listen();
  const auto longest = *worker->connect(listener->address(), std::string(64, 'x'));
  CHECK_FALSE(*longest->ready());
  CHECK((*listener->accept())->hello() == std::string(64, 'x'));
  const auto none = worker->connect(listener->address(), std::string(65, 'x'));
  REQUIRE_FALSE(none);
  CHECK(none.error().code == Code::invalid_argument);
}

TEST_CASE("shm: an address that is none, or no listener's, is an error") {
  const auto worker = *open_shm_worker({});
  CHECK_FALSE(worker->connect("", ""));
  CHECK_FALSE(worker->connect("nonsense", ""));
  const auto memory = *SharedMemory::create(4096);
  const auto none = worker->connect(memory->address(), "");
  REQUIRE_FALSE(none);
  CHECK(none.error().what == "shm: the address is no listener's");
}

TEST_CASE("shm: slots that differ are told to both sides") {
  const auto worker = *open_shm_worker({4, 4096});
  const auto listener = *worker->listen();
  for (const Slots slots : {Slots{8, 4096}, Slots{4, 8192}, Slots{8, 2048}}) {
    const auto endpoint = *(*open_shm_worker(slots))->connect(listener->address(), "");
    CHECK_FALSE(*endpoint->ready());
    const auto refused = listener->accept();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what == fmt::format("shm: the peer has {} slots of {} bytes, this rank 4 of 4096", slots.credits, slots.bytes));
    CHECK_FALSE(endpoint->ready());
  }
}

TEST_CASE("shm: a full mailbox delays who connects, and loses nobody") {
  constexpr int peers = 300;  // more than the mailbox has entries
  const auto worker = *open_shm_worker({2, 4096});
  const auto listener = *worker->listen();
  std::vector<std::unique_ptr<Endpoint>> callers;
  for (int i = 0; i < peers; ++i) {
    callers.push_back(*worker->connect(listener->address(), std::to_string(i)));
    CHECK_FALSE(*callers.back()->ready());
  }
  std::vector<std::unique_ptr<Endpoint>> accepted_ones;
  std::vector<bool> seen(peers);
  while (accepted_ones.size() < peers) {
    auto endpoint = *listener->accept();
    if (endpoint == nullptr) {
      for (const auto& caller : callers) REQUIRE(caller->ready());
      continue;
    }
    seen[std::stoul(std::string(endpoint->hello()))] = true;
    accepted_ones.push_back(std::move(endpoint));
  }
  CHECK(std::count(seen.begin(), seen.end(), true) == peers);
  for (const auto& caller : callers) CHECK(*caller->ready());
}

TEST_CASE("shm: credits are those that were asked for, in each direction") {
  ShmPair p({3, 4096});
  REQUIRE(p.right != nullptr);
  for (int i = 0; i < 3; ++i) CHECK(test::send(p.left->fifo(), 0, {}));
  CHECK_FALSE(test::send(p.left->fifo(), 0, {}));
  CHECK(test::send(p.right->fifo(), 0, {}));
}

TEST_CASE("shm: random traffic of two threads arrives as it was sent") {
  ShmPair p({4, 8192});
  REQUIRE(p.right != nullptr);
  std::string right;
  std::thread thread([&] { right = test::exchange(p.right->fifo(), 2, 1, 2000, 8192); });
  const std::string left = test::exchange(p.left->fifo(), 1, 2, 2000, 8192);
  thread.join();
  CHECK(left.empty());
  CHECK(right.empty());
}

TEST_CASE("shm: random traffic between processes arrives as it was sent") {
  const auto worker = *open_shm_worker({4, 8192});
  const auto listener = *worker->listen();
  const std::string address = listener->address();
  std::vector<pid_t> children;
  for (uint64_t child = 0; child < 2; ++child) {
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {  // a process of its own from here: no assertions, the exit code is the result
      const auto own = *open_shm_worker({4, 8192});
      const auto endpoint = *own->connect(address, std::to_string(child));
      if (!becomes_ready(*endpoint)) ::_exit(1);
      ::_exit(test::exchange(endpoint->fifo(), 10 + child, 20 + child, 1000, 8192).empty() ? 0 : 2);
    }
    children.push_back(pid);
  }
  for (size_t i = 0; i < children.size(); ++i) {
    const auto endpoint = accepted(*listener);
    REQUIRE(endpoint != nullptr);
    const uint64_t child = std::stoul(std::string(endpoint->hello()));
    CHECK(test::exchange(endpoint->fifo(), 20 + child, 10 + child, 1000, 8192).empty());
  }
  for (const pid_t pid : children) {
    int status = -1;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
  }
}

TEST_CASE("shm: what a process sent before it ended can still be received") {
  const auto worker = *open_shm_worker({4, 8192});
  const auto listener = *worker->listen();
  const std::string address = listener->address();
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    const auto own = *open_shm_worker({4, 8192});
    const auto endpoint = *own->connect(address, "");
    if (!becomes_ready(*endpoint) || !test::send(endpoint->fifo(), 5, test::message(1, 2, 8192))) ::_exit(1);
    ::_exit(0);
  }
  const auto endpoint = accepted(*listener);
  REQUIRE(endpoint != nullptr);
  int status = -1;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(status == 0);
  CHECK(test::is(endpoint->fifo().front(), 5, test::message(1, 2, 8192)));
}

TEST_CASE("shm: a listener that may not open the caller's memory says so, and the caller learns it at once") {
  if (::getuid() != 0) {
    WARN("needs to be root to be two users: not tested");
    return;
  }
  int address_pipe[2];
  REQUIRE(::pipe(address_pipe) == 0);
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {  // a listener that is nobody, for whom root's memory is closed
    if (::setuid(65534) != 0) ::_exit(1);
    const auto own = *open_shm_worker({4, 8192});
    const auto listener = *own->listen();
    const std::string address = listener->address();
    if (::write(address_pipe[1], address.data(), address.size()) < 0) ::_exit(2);
    for (int i = 0; i < 100000; ++i) {
      const auto endpoint = listener->accept();
      if (!endpoint) ::_exit(0);
      if (*endpoint != nullptr) ::_exit(3);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    ::_exit(4);
  }
  std::string address(256, '\0');
  const ssize_t length = ::read(address_pipe[0], address.data(), address.size());
  REQUIRE(length > 0);
  const auto worker = *open_shm_worker({4, 8192});
  const auto endpoint = worker->connect(std::string_view(address).substr(0, static_cast<size_t>(length)), "");
  REQUIRE(endpoint);
  bool told = false;
  for (int i = 0; i < 100000 && !told; ++i) {
    told = !(*endpoint)->ready();  // the first one posts the letter
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  CHECK(told);
  int status = -1;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(status == 0);
  ::close(address_pipe[0]);
  ::close(address_pipe[1]);
}
