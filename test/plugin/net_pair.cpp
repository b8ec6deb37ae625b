#include "test/plugin/net_pair.h"

#include <sstream>
#include <string>
#include <vector>

namespace gyre::test {

Net::Net(int version) : plugin_(must(perf::NetPlugin::open(path(), version))), context_(must(plugin_->init({}))) {
  const char* ends = std::getenv("TEST_NET_ENDS");
  if (ends == nullptr) return;
  std::istringstream words(ends);
  std::string connects, listens;
  words >> connects >> listens;
  ends_ = Ends{device_of(connects, version), device_of(listens, version)};
}

int Net::device_of(std::string names, int version) const {
  constexpr int first_that_fuses = 9;
  std::istringstream words(std::move(names));
  std::vector<int> members;
  const int count = devices();
  for (std::string name; std::getline(words, name, '+');)
    for (int i = 0; i < count; ++i)
      if (must(plugin_->properties(i)).name == name) members.push_back(i);
  if (members.empty()) throw std::runtime_error("TEST_NET_ENDS names no device of this plugin");
  return members.size() == 1 || version < first_that_fuses ? members.front() : must(plugin_->make_virtual_device(members));
}

void* Net::receive(void* comm, std::span<const std::span<std::byte>> data, const int* tags, void* memory, void* stale) const {
  void *at[8], *handles[8], *request = stale;
  size_t bytes[8];
  int copied_tags[8];
  for (int tries = stale == nullptr ? patient_tries : 1; tries > 0; --tries) {
    for (size_t i = 0; i < data.size(); ++i)
      at[i] = data[i].data(), bytes[i] = data[i].size(), handles[i] = memory, copied_tags[i] = tags[i];
    check("irecv", plugin_->irecv(comm, static_cast<int>(data.size()), at, bytes, copied_tags, handles, &request));
    // The arrays are the caller's again.
    for (size_t i = 0; i < data.size(); ++i) at[i] = handles[i] = nullptr, bytes[i] = 0, copied_tags[i] = -1;
    if (request != nullptr) break;
  }
  return request;
}

Pair::Pair(Net& net, int device) : net_(net) {
  perf::NetHandle handle;
  const auto ends = net.ends(device);
  void* listener = must(net->listen(net.context(), ends.listens, handle));
  until(
      [&] {
        if (sender == nullptr) sender = must(net->connect(net.context(), ends.connects, handle));
        if (receiver == nullptr) receiver = must(net->accept(listener));
        return sender != nullptr && receiver != nullptr;
      },
      "a connection");
  must(net->close_listen(listener));
}

Memory::Memory(Net& net, void* comm, size_t bytes)
    : net_(net),
      comm_(comm),
      size_(bytes),
      data_(new std::byte[bytes]),
      handle_(must(net->register_memory(comm, data_.get(), bytes, NCCL_PTR_HOST))) {
  wipe(this->bytes());
}

Memory::~Memory() { (void)net_->deregister(comm_, handle_); }

}  // namespace gyre::test
