// The UCX backend over the transports that UCX_TLS allows: between two threads and between two processes. Processes are forked before
// anything of UCX is opened in the child; the parent opens its own afterwards.
#include "transport/ucx.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <thread>

#include "test/catch.h"
#include "test/must.h"
#include "test/transport/ucx_waiting.h"

using namespace gyre;
using namespace gyre::transport;
using gyre::test::accept_one;
using gyre::test::await;
using gyre::test::must;
using gyre::test::slow;

namespace {

/// Carries strings between two threads or two processes.
struct Wire {
  int fd;
  void put(const std::string& s) const {
    const uint32_t bytes = static_cast<uint32_t>(s.size());
    if (write(fd, &bytes, sizeof bytes) != sizeof bytes || write(fd, s.data(), s.size()) != static_cast<ssize_t>(s.size()))
      throw std::runtime_error("wire: write");
  }
  std::string get() const {
    uint32_t bytes = 0;
    if (recv(fd, &bytes, sizeof bytes, MSG_WAITALL) != sizeof bytes) throw std::runtime_error("wire: closed");
    std::string s(bytes, '\0');
    if (recv(fd, s.data(), bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes)) throw std::runtime_error("wire: closed");
    return s;
  }
};

struct Wires {
  Wires() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) throw std::runtime_error("socketpair");
    left = {fds[0]};
    right = {fds[1]};
  }
  ~Wires() {
    close(left.fd);
    close(right.fd);
  }
  Wire left{-1}, right{-1};
};

/// One side of `count` connections, all made by the right side.
std::vector<std::unique_ptr<Endpoint>> join(Worker& worker, Wire wire, bool left, int count = 1) {
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  if (left) {
    auto listener = must(worker.listen());
    wire.put(listener->address());
    for (int i = 0; i < count; ++i) endpoints.push_back(accept_one(worker, *listener));
  } else {
    const auto address = wire.get();
    for (int i = 0; i < count; ++i) endpoints.push_back(must(worker.connect(address, "hello " + std::to_string(i))));
  }
  for (auto& e : endpoints) await(worker, "ready", [&] { return must(e->ready()); });
  return endpoints;
}

std::byte pattern(uint64_t message, size_t i) { return static_cast<std::byte>(message * 131 + i * 7 + (i >> 8)); }

void fill(std::span<std::byte> bytes, uint64_t message) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern(message, i);
}
void check(std::span<const std::byte> bytes, uint64_t message) {
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != pattern(message, i)) throw std::runtime_error("wrong byte in message " + std::to_string(message));
}

/// Both sides stay until both have finished; without this one would close while the other still sends.
void meet(Worker& worker, Wire wire) {
  wire.put("done");
  await(worker, "the peer's end", [&] {
    char byte;
    return recv(wire.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  });
  wire.get();
}

/// The same on both sides: every size in both directions at once, by send() and receive().
void exchange_sizes(Wire wire, bool left) {
  auto worker = must(open_ucx_worker({}));
  auto endpoint = std::move(join(*worker, wire, left)[0]);
  uint64_t tag = 0;
  for (const size_t bytes : {0u, 1u, 8u, 1000u, 8192u, 65536u, 65537u, 1048576u, 4194304u}) {
    std::vector<std::byte> out(bytes), in(bytes);
    fill(out, bytes + left);
    Request* receive = endpoint->receive(++tag, in, nullptr);
    Request* send = endpoint->send(tag, out, nullptr);
    await(*worker, "message", [&] { return send->done && receive->done; });
    if (send->failure || receive->failure) throw std::runtime_error(send->failure ? send->failure : receive->failure);
    if (receive->bytes != bytes) throw std::runtime_error("wrong length");
    check(in, bytes + !left);
    endpoint->release(send);
    endpoint->release(receive);
  }
  meet(*worker, wire);
}

/// Thousands of messages each way through the fifos of several endpoints.
void stream(Wire wire, bool left, int connections, uint64_t messages, Slots slots) {
  auto worker = must(open_ucx_worker(slots));
  auto endpoints = join(*worker, wire, left, connections);
  struct Progress {
    Fifo* fifo;
    uint64_t announced = 0, popped = 0;
    std::vector<std::byte> memory{};
  };
  std::vector<Progress> all;
  for (auto& e : endpoints) all.push_back({&e->fifo(), 0, 0, std::vector<std::byte>(slots.bytes * slots.credits)});
  const auto length = [&](uint64_t i) { return static_cast<size_t>(i * 2654435761u % (slots.bytes + 1)); };
  const auto step = [&](Progress& p) {
    if (const auto i = p.fifo->sent(); i < messages) {
      if (auto* slot = p.fifo->reserve(length(i))) fill({slot, length(i)}, i), p.fifo->commit(i, length(i));
    }
    if (p.announced < messages) {
      auto* destination = p.announced % 2 ? p.memory.data() + p.announced % slots.credits * slots.bytes : nullptr;
      if (p.fifo->expect(p.announced, destination, length(p.announced))) ++p.announced;
    }
    if (const auto a = p.fifo->front(); a.data) {
      if (a.plan != p.popped || a.bytes != length(p.popped)) throw std::runtime_error("out of order");
      check({a.data, a.bytes}, p.popped);
      p.fifo->pop();
      ++p.popped;
    }
    return p.popped == messages && p.fifo->completed() == messages;
  };
  await(*worker, "stream", [&] {
    bool done = true;
    for (auto& p : all) done = step(p) && done;
    return done;
  });
  meet(*worker, wire);
  endpoints.clear();
  if (worker->failure()) throw std::runtime_error(worker->failure()->what);
}

using Sides = std::function<void(Wire, bool left)>;

std::string text_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

void in_two_threads(const Sides& side) {
  Wires wires;
  auto right = std::async(std::launch::async, [&] { return text_of([&] { side(wires.right, false); }); });
  const auto left = text_of([&] { side(wires.left, true); });
  CHECK(left == "");
  CHECK(right.get() == "");
}

/// Two children, so that this process never opens UCX and can fork again. Their exit codes are the result, their words go to stderr.
/// TEST_DEVICES, such as "rxe_a0:1 rxe_b0:1", gives each side a network device of its own.
void in_two_processes(const Sides& side, int status_of_right = 0) {
  Wires wires;
  pid_t children[2];
  for (const bool left : {true, false}) {
    children[left] = fork();
    if (children[left] != 0) continue;
    if (const char* both = std::getenv("TEST_DEVICES")) {
      const std::string devices = both;
      const auto gap = devices.find(' ');
      setenv("UCX_NET_DEVICES", (left ? devices.substr(0, gap) : devices.substr(gap + 1)).c_str(), 1);
    }
    const auto error = text_of([&] { side(left ? wires.left : wires.right, left); });
    if (!error.empty()) fprintf(stderr, "%s side: %s\n", left ? "left" : "right", error.c_str());
    _exit(error.empty() ? 0 : 1);
  }
  for (const bool left : {false, true}) {
    int status = 0;
    REQUIRE(waitpid(children[left], &status, 0) == children[left]);
    CHECK(status == (left ? 0 : status_of_right));
  }
}

}  // namespace

TEST_CASE("ucx between two processes: every size arrives in both directions") { in_two_processes(exchange_sizes); }

TEST_CASE("ucx between two processes: thousands of messages through the fifos of several endpoints") {
  in_two_processes([](Wire wire, bool left) { stream(wire, left, 4, 2000 / slow, {4, 20000}); });
}

TEST_CASE("ucx between two processes: a peer that is killed is a failure within seconds") {
  in_two_processes(
      [](Wire wire, bool left) {
        auto worker = must(open_ucx_worker({}));
        auto endpoint = std::move(join(*worker, wire, left)[0]);
        std::vector<std::byte> data(1 << 20);
        if (!left) {
          // Dies with a send under way that nobody receives.
          wire.put(std::to_string(getpid()));
          endpoint->send(1, data, nullptr);
          for (;;) worker->progress();
        }
        Request* receive = endpoint->receive(2, data, nullptr);
        kill(std::stoi(wire.get()), SIGKILL);
        const auto start = std::chrono::steady_clock::now();
        const auto waited = [&] { return std::chrono::steady_clock::now() - start; };
        while (!worker->failure() && waited() < std::chrono::seconds(5) * slow) worker->progress();
        if (!worker->failure()) throw std::runtime_error("not seen");
        fprintf(stderr, "seen after %.2f s: %s\n", std::chrono::duration<double>(waited()).count(), worker->failure()->what.c_str());
        while (!receive->done && waited() < std::chrono::seconds(5) * slow) worker->progress();
        if (!receive->failure) throw std::runtime_error("the receive did not fail");
        if (auto* refused = endpoint->send(1, data, nullptr); !refused || !refused->failure)
          throw std::runtime_error("a later send is not refused");
        endpoint.reset();
        worker.reset();
        if (waited() > std::chrono::seconds(8) * slow) throw std::runtime_error("closing took too long");
      },
      SIGKILL);
}

// Each time at another moment of what is read from the peer's memory, or sent. Not over TCP: there UCX (1.13) aborts.
TEST_CASE("ucx between two processes: a worker ends whatever a killed peer left under way") {
  const char* tls = std::getenv("UCX_TLS");
  if (tls == nullptr || std::strstr(tls, "posix") == nullptr) return;
  const int moment = GENERATE(0, 1, 2, 3, 5, 9, 15, 23);
  in_two_processes(
      [moment](Wire wire, bool left) {
        auto worker = must(open_ucx_worker({}));
        auto endpoint = std::move(join(*worker, wire, left)[0]);
        std::vector<std::byte> out(4 << 20), in(8 * out.size());
        std::array<Request*, 8> receives{};
        for (size_t i = 0; i < receives.size(); ++i) {
          receives[i] = endpoint->receive(i, std::span(in).subspan(i * out.size(), out.size()), nullptr);
          endpoint->send(i, out, nullptr);
        }
        if (!left) {
          wire.put(std::to_string(getpid()));
          for (;;) worker->progress();
        }
        const int peer = std::stoi(wire.get());
        for (int i = 0; i < moment; ++i) worker->progress();
        kill(peer, SIGKILL);
        endpoint->break_off("given up");
        endpoint->let_go();
        endpoint.reset();
        worker.reset();
      },
      SIGKILL);
}

TEST_CASE("ucx between two processes: a peer that closes and exits is no failure") {
  in_two_processes([](Wire wire, bool left) {
    auto worker = must(open_ucx_worker({}));
    auto endpoints = join(*worker, wire, left, 3);
    std::byte byte{};
    if (left) {
      auto* send = endpoints[0]->send(1, {&byte, 1}, nullptr);
      await(*worker, "last word", [&] { return send->done; });
      return;
    }
    // The message that came before the end is given out after it.
    auto* never = endpoints[1]->receive(9, {&byte, 1}, nullptr);
    await(*worker, "the peer's end", [&] { return never->done; });
    if (std::string(never->failure) != "the peer closed the connection") throw std::runtime_error(never->failure);
    auto* last = endpoints[0]->receive(1, {&byte, 1}, nullptr);
    await(*worker, "last word", [&] { return last->done; });
    if (last->failure) throw std::runtime_error(last->failure);
  });
}

TEST_CASE("ucx between two threads: every size arrives in both directions") { in_two_threads(exchange_sizes); }

TEST_CASE("ucx between two threads: thousands of messages through the fifos of several endpoints") {
  in_two_threads([](Wire wire, bool left) { stream(wire, left, 3, 1000 / slow, {2, 9000}); });
}

TEST_CASE("ucx between two threads: many endpoints between the same workers each know their own hello and messages") {
  in_two_threads([](Wire wire, bool left) {
    auto worker = must(open_ucx_worker({}));
    auto endpoints = join(*worker, wire, left, 32);
    std::vector<std::string> out, in(endpoints.size(), std::string(8, ' '));
    for (auto& e : endpoints) out.push_back(std::string(e->hello()));
    std::vector<Request*> requests;
    for (size_t i = 0; i < endpoints.size(); ++i) {
      requests.push_back(endpoints[i]->receive(1, std::as_writable_bytes(std::span(in[i])), nullptr));
      requests.push_back(endpoints[i]->send(1, std::as_bytes(std::span(out[i])), nullptr));
    }
    for (auto* r : requests) await(*worker, "hello", [&] { return r->done; });
    for (size_t i = 0; i < endpoints.size(); ++i)
      if (in[i].substr(0, out[i].size()) != out[i]) throw std::runtime_error(in[i] + " where " + out[i] + " should be");
    meet(*worker, wire);
  });
}

TEST_CASE("ucx between two threads: slots that differ are an error on both sides") {
  in_two_threads([](Wire wire, bool left) {
    auto worker = must(open_ucx_worker({left ? 4u : 8u, 1024}));
    const auto error = text_of([&] { join(*worker, wire, left); });
    if (error.find("credits of") == std::string::npos) throw std::runtime_error("no error, but: " + error);
    meet(*worker, wire);
  });
}

namespace {

/// Whether who would sleep now is woken within the limit, or kept awake.
bool wakes(Worker& worker, std::chrono::milliseconds limit) {
  std::vector<pollfd> awaited;
  return !worker.arm(awaited) || poll(awaited.data(), awaited.size(), static_cast<int>(limit.count())) > 0;
}

}  // namespace

TEST_CASE("ucx between two threads: who sleeps is woken by what comes, and what has come keeps him awake") {
  in_two_threads([](Wire wire, bool left) {
    UcxWay way;
    way.wakes = true;
    auto worker = must(open_ucx_worker({}, way));
    auto endpoint = std::move(join(*worker, wire, left)[0]);
    std::array<std::byte, 8> data{};
    for (uint64_t tag = 0; tag < 10; ++tag) {
      const bool asleep = tag % 2 == 0;  // before it comes
      Request* request = nullptr;
      if (left) {
        request = endpoint->receive(tag, data, nullptr);
        await(*worker, "quiet", [&] { return !wakes(*worker, std::chrono::milliseconds(20)); });
        std::vector<pollfd> awaited;
        if (!worker->arm(awaited)) throw std::runtime_error("not quiet");
        wire.put("send");
        if (!asleep) wire.get();
        if (poll(awaited.data(), awaited.size(), 5000 * static_cast<int>(slow)) != 1) throw std::runtime_error("not woken");
        if (asleep) wire.get();
        if (!wakes(*worker, std::chrono::milliseconds(5000 * slow))) throw std::runtime_error("asleep over a message");
      } else {
        wire.get();
        request = endpoint->send(tag, data, nullptr);
      }
      await(*worker, "message", [&] { return request->done; });
      if (!left) wire.put("sent");
      endpoint->release(request);
    }
    meet(*worker, wire);
  });
}

TEST_CASE("ucx between two threads: who was not asked to can't wake a sleeper") {
  auto worker = must(open_ucx_worker({}));
  std::vector<pollfd> awaited;
  CHECK_FALSE(worker->arm(awaited));
  CHECK(awaited.empty());
}
