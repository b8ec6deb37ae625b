#include "test/plugin/caller_setup.h"

#include <cstring>

namespace gyre::test {

Status Setup::announce() const {
  const ncclNetProperties_v12_t properties = GYRE_TRY(caller_.plugin.properties(device()));
  if (properties.maxRecvs < std::min(job_.traffic.senders, 8)) {
    return Error{Code::invalid_usage, fmt::format("device {} groups {} receives only", properties.name, properties.maxRecvs)};
  }
  ncclNetAttr_v12_t attributes{};
  attributes.sendCommAttr = attributes.recvCommAttr = {job_.ranks, 1, job_.channels, 1};
  attributes.op = attributes.algo = attributes.proto = ~0U;
  return caller_.plugin.set_attributes(caller_.context, attributes);
}

Made Setup::made(void* comm, bool sends) const {
  job_.at(sends ? Point::connected : Point::accepted);
  auto channel = std::make_unique<Channel>(caller_.plugin, job_, edge_, sends, comm);
  GYRE_TRY(channel->make_buffers());
  job_.at(Point::registered);
  return channel;
}

// Each sender of a shared connection has a listener, but only the first one's is used.
Status Accepting::listen() {
  GYRE_TRY(announce());
  for (int sender = job_.traffic.senders - 1; sender >= 0; --sender) {
    perf::NetHandle handle;
    std::memset(handle.data(), 0x5a, handle.size());
    listener_ = GYRE_TRY(caller_.plugin.listen(caller_.context, device(), handle));
    if (sender == 0)
      GYRE_TRY(job_.mailbox.post(name(), {reinterpret_cast<const char*>(handle.data()), handle.size()}));
    else
      GYRE_TRY(caller_.plugin.close_listen(listener_));
  }
  job_.at(Point::listening);
  return {};
}

Made Accepting::step() {
  if (listener_ == nullptr) {
    GYRE_TRY(listen());
    return Made(nullptr);
  }
  void* comm = GYRE_TRY(caller_.plugin.accept(listener_));
  if (comm == nullptr) {
    job_.at(Point::accepting);
    return Made(nullptr);
  }
  GYRE_TRY(caller_.plugin.close_listen(listener_));
  job_.mailbox.remove(name());
  return made(comm, false);
}

Made Connecting::step() {
  if (!has_handle_) {
    const auto handle = job_.mailbox.read(name());
    if (!handle) return Made(nullptr);
    if (handle->size() != handle_.size()) return Error{Code::internal, fmt::format("{} has {} bytes", name(), handle->size())};
    std::memcpy(handle_.data(), handle->data(), handle_.size());
    has_handle_ = true;
    GYRE_TRY(announce());
  }
  void* comm = GYRE_TRY(caller_.plugin.connect(caller_.context, device(), handle_));
  if (comm == nullptr) {
    job_.at(Point::connecting);
    return Made(nullptr);
  }
  return made(comm, true);
}

}  // namespace gyre::test
