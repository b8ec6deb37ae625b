// The verbs backend over real libibverbs: both ends in this process, each on its devices. TEST_VERBS_A and TEST_VERBS_B name them, with the
// address that their listeners take: "10.77.0.1 rxe_a0 rxe_a1". The GYRE_ options are heeded. Messages go from A to B, and every byte of
// each is checked. The arguments say what happens meanwhile, in their order:
//
//   sizes               a few messages of each size
//   during COMMAND      this command runs while messages are under way, such as one that cuts a rail
//   until-used DEVICE   messages, until one of them goes to this device of B, by its share
//   until-unused DEVICE messages, until one passes that does not
//   until-error WORDS   messages, until an end has an error; it must contain these words. Nothing can follow
#include <arpa/inet.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <thread>

#include "base/config.h"
#include "transport/verbs.h"

using namespace gyre;
using namespace gyre::transport;

namespace {

constexpr size_t largest = 4 << 20, usual = 256 << 10;
constexpr std::chrono::seconds patience{90};

[[noreturn]] void give_up(const std::string& why) { std::exit((std::cerr << why << '\n', 1)); }

template <class T>
T must(Result<T> result) {
  if (!result) give_up(result.error().what);
  return *std::move(result);
}

VerbsWay way(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) std::exit((std::cerr << variable << " is not set\n", 77));
  std::istringstream words(text);
  std::string address, device;
  words >> address;
  VerbsWay way;
  way.take(must(Config::from_environment()));
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  inet_pton(AF_INET, address.c_str(), &v4.sin_addr);
  std::memcpy(&way.address.bytes, &v4, way.address.length = sizeof v4);
  while (words >> device) way.ports.push_back({device, 1});
  return way;
}

struct End {
  std::unique_ptr<Worker> worker;
  std::unique_ptr<Endpoint> endpoint;
  std::vector<std::byte> memory = std::vector<std::byte>(2 * largest);
  std::unique_ptr<Memory> registered;
};

class Traffic {
 public:
  Traffic() {
    a_.worker = must(open_verbs_worker({}, way("TEST_VERBS_A")));
    b_.worker = must(open_verbs_worker({}, way("TEST_VERBS_B")));
    listener_ = must(a_.worker->listen());
    b_.endpoint = must(b_.worker->connect(listener_->address(), "hello"));
    while (!a_.endpoint || !must(a_.endpoint->ready()) || !must(b_.endpoint->ready())) {
      progress();
      if (!a_.endpoint) a_.endpoint = must(listener_->accept());
    }
    for (End* end : {&a_, &b_}) end->registered = must(end->worker->register_memory(end->memory, MemoryKind::host));
    std::minstd_rand random(1);
    for (auto& byte : a_.memory) byte = static_cast<std::byte>(random());
  }

  /// False: the connection has an error.
  bool message(size_t bytes) {
    const size_t from = ++count_ * 4099 % largest;  // no message like the one before
    const std::span<std::byte> place(b_.memory.data() + 100, bytes + 7);
    std::fill(place.begin(), place.end(), std::byte{0x55});
    Request* receive = b_.endpoint->receive(3, place, b_.registered.get());
    Request* send = nullptr;
    while ((send = a_.endpoint->send(3, {a_.memory.data() + from, bytes}, a_.registered.get())) == nullptr) progress();
    while (!send->done || !receive->done) progress();
    if (send->failure || receive->failure) return error_ = send->failure ? send->failure : receive->failure, false;
    if (receive->bytes != bytes || std::memcmp(place.data(), a_.memory.data() + from, bytes) != 0 || place[bytes] != std::byte{0x55})
      give_up("message " + std::to_string(count_) + ", of " + std::to_string(bytes) + " bytes, is wrong");
    a_.endpoint->release(send);
    b_.endpoint->release(receive);
    return true;
  }
  void messages(size_t bytes, size_t count = 1) {
    while (count-- > 0)
      if (!message(bytes)) give_up(error_);
  }
  const std::string& error() const { return error_; }

 private:
  void progress() {
    for (End* end : {&a_, &b_}) (void)end->worker->progress();
  }
  End a_, b_;
  std::unique_ptr<Listener> listener_;
  size_t count_ = 0;
  std::string error_;
};

uint64_t packets_to(const std::string& device) {
  std::ifstream file("/sys/class/infiniband/" + device + "/ports/1/hw_counters/rcvd_pkts");
  uint64_t packets = 0;
  if (!(file >> packets)) give_up("no counter of packets to " + device);
  return packets;
}

// Mails and probes are a few packets; the smallest share of a message is 32, of 4 KiB, where two rails share it.
void until(Traffic& traffic, const std::string& device, bool used) {
  constexpr uint64_t few = 24;
  const auto limit = std::chrono::steady_clock::now() + patience;
  for (bool is_used = !used; is_used != used;) {
    const uint64_t before = packets_to(device);
    traffic.messages(usual);
    is_used = packets_to(device) - before > few;
    if (std::chrono::steady_clock::now() > limit) give_up(device + (used ? " is not used" : " is still used"));
  }
}

void during(Traffic& traffic, const std::string& command, bool may_fail) {
  std::atomic<int> code{-1};
  std::thread beside([&] { code = std::system(command.c_str()); });
  while (code == -1) {
    if (traffic.message(usual)) continue;
    if (!may_fail) give_up(traffic.error());
    break;
  }
  beside.join();
  if (code != 0) give_up(command + " failed");
}

void until_error(Traffic& traffic, const std::string& words) {
  const auto limit = std::chrono::steady_clock::now() + patience;
  while (traffic.message(usual))
    if (std::chrono::steady_clock::now() > limit) give_up("there is no error");
  if (traffic.error().find(words) == std::string::npos) give_up("the error is \"" + traffic.error() + "\", without \"" + words + "\"");
}

}  // namespace

int main(int argc, char** argv) {
  const auto begun = std::chrono::steady_clock::now();
  Traffic traffic;
  for (int i = 1; i < argc; ++i) {
    const std::string step = argv[i], what = step != "sizes" && i + 1 < argc ? argv[++i] : "";
    if (step == "sizes")
      for (const size_t bytes : {0U, 1U, 64U, 221U, 4096U, 65536U, 1000001U}) traffic.messages(bytes, 3);
    else if (step == "during")
      during(traffic, what, i + 1 < argc && argv[i + 1] == std::string("until-error"));
    else if (step == "until-used" || step == "until-unused")
      until(traffic, what, step == "until-used");
    else if (step == "until-error")
      until_error(traffic, what);
    else
      give_up("there is no step " + step);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun;
    std::cout << passed.count() << " s: " << step << ' ' << what << std::endl;
  }
  std::cout << "all is right\n";
}
