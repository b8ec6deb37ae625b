// The verbs backend over real libibverbs: both ends in this process, each on its devices. TEST_VERBS_A and TEST_VERBS_B name them, with the
// address that their listeners take: "10.77.0.1 rxe_a0 rxe_a1".
#include <arpa/inet.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>
#include <sstream>

#include "transport/verbs.h"

using namespace gyre;
using namespace gyre::transport;

namespace {

VerbsWay way(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) std::exit((std::cerr << variable << " is not set\n", 77));
  std::istringstream words(text);
  std::string address, device;
  words >> address;
  VerbsWay way;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  inet_pton(AF_INET, address.c_str(), &v4.sin_addr);
  std::memcpy(&way.address.bytes, &v4, way.address.length = sizeof v4);
  while (words >> device) way.ports.push_back({device, 1});
  return way;
}

template <class T>
T must(Result<T> result) {
  if (!result) std::exit((std::cerr << result.error().what << '\n', 1));
  return *std::move(result);
}

struct End {
  std::unique_ptr<Worker> worker;
  std::unique_ptr<Endpoint> endpoint;
  std::vector<std::byte> memory = std::vector<std::byte>(8 << 20);
  std::unique_ptr<Memory> registered;
};

}  // namespace

int main() {
  End a, b;
  a.worker = must(open_verbs_worker({}, way("TEST_VERBS_A")));
  b.worker = must(open_verbs_worker({}, way("TEST_VERBS_B")));
  auto listener = must(a.worker->listen());
  b.endpoint = must(b.worker->connect(listener->address(), "hello"));
  const auto progress = [&] {
    for (End* end : {&a, &b}) {
      (void)end->worker->progress();
      if (const Error* failure = end->worker->failure()) std::exit((std::cerr << failure->what << '\n', 1));
    }
  };
  while (!a.endpoint || !must(a.endpoint->ready()) || !must(b.endpoint->ready())) {
    progress();
    if (!a.endpoint) a.endpoint = must(listener->accept());
  }
  for (End* end : {&a, &b}) end->registered = must(end->worker->register_memory(end->memory, MemoryKind::host));
  std::minstd_rand random(1);
  for (auto& byte : a.memory) byte = static_cast<std::byte>(random());
  const auto begun = std::chrono::steady_clock::now();
  for (const size_t bytes : {0U, 1U, 64U, 221U, 4096U, 65536U, 1000001U, 4194304U}) {
    // In the middle of the last size, such as a rail that is cut.
    const char* command = std::getenv("TEST_VERBS_COMMAND");
    for (int i = 0; i < 5; ++i) {
      if (bytes == 4194304U && i == 2 && command && std::system(command) != 0) return std::cerr << command << " failed\n", 1;
      const std::span<std::byte> place(b.memory.data() + 100, bytes + 7);
      std::fill(place.begin(), place.end(), std::byte{0x55});
      Request* receive = b.endpoint->receive(3, place, b.registered.get());
      Request* send = nullptr;
      while ((send = a.endpoint->send(3, {a.memory.data() + i, bytes}, a.registered.get())) == nullptr) progress();
      while (!send->done || !receive->done) progress();
      if (send->failure || receive->failure || receive->bytes != bytes || std::memcmp(place.data(), a.memory.data() + i, bytes) != 0 ||
          place[bytes] != std::byte{0x55})
        return std::cerr << "a message of " << bytes << " bytes is wrong\n", 1;
      a.endpoint->release(send);
      b.endpoint->release(receive);
    }
    std::cout << bytes << " bytes after " << std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() << " s\n";
  }
  std::cout << "all is right\n";
}
