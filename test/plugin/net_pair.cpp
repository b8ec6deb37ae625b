#include "test/plugin/net_pair.h"

namespace gyre::test {

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
  void* listener = must(net->listen(net.context(), device, handle));
  until(
      [&] {
        if (sender == nullptr) sender = must(net->connect(net.context(), device, handle));
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
