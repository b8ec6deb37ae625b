#include "perf/net_connections.h"

#include <fmt/format.h>
#include <sched.h>

#include <cstring>
#include <string>

namespace gyre::perf {
namespace {

constexpr uint64_t calls_per_look = 1024;

}  // namespace

Status NetPatience::wait(const char* what) {
  if (bootstrap_.attention()) {
    if (const Error* failure = bootstrap_.failure(); failure != nullptr) return *failure;
  }
  if (++idle_ % calls_per_look == 0) {  // the clock costs more than a short wait
    const auto now = std::chrono::steady_clock::now();
    if (idle_ == calls_per_look) since_ = now;
    if (now - since_ > limit_) {
      return Error{Code::timeout, fmt::format("nothing moved for {} s: waited for {}", limit_.count() / 1000, what)};
    }
  }
  if (yields_) sched_yield();
  return {};
}

Result<std::unique_ptr<NetConnections>> NetConnections::make(NetPlugin& plugin, void* context, int device, transport::Bootstrap& bootstrap,
                                                             NetPatience& patience, int count, int back) {
  std::unique_ptr<NetConnections> made(new NetConnections(plugin));
  const int accepts = bootstrap.rank() == 0 ? back : count;
  std::vector<void*> listening;
  std::string handles;
  for (int i = 0; i < accepts; ++i) {
    NetHandle handle{};
    listening.push_back(GYRE_TRY(plugin.listen(context, device, handle)));
    handles.append(reinterpret_cast<const char*>(handle.data()), handle.size());
  }
  const auto all = GYRE_TRY(bootstrap.all_gather(handles));
  const std::string& theirs = all[bootstrap.rank() == 0 ? 1 : 0];
  std::vector<NetHandle> targets(theirs.size() / sizeof(NetHandle));
  std::memcpy(targets.data(), theirs.data(), targets.size() * sizeof(NetHandle));
  GYRE_TRY(made->connect_all(context, device, std::move(targets), listening, patience));
  for (void* comm : listening) GYRE_TRY(plugin.close_listen(comm));
  GYRE_TRY(bootstrap.barrier());
  return made;
}

// A handle is the same memory in every attempt: plugins keep their state in it.
Status NetConnections::connect_all(void* context, int device, std::vector<NetHandle> handles, std::vector<void*>& listening,
                                   NetPatience& patience) {
  sends_.assign(handles.size(), {nullptr, true});
  receives_.assign(listening.size(), {nullptr, false});
  for (size_t left = handles.size() + listening.size(); left > 0;) {
    const size_t before = left;
    for (size_t i = 0; i < handles.size(); ++i) {
      if (sends_[i].comm != nullptr) continue;
      sends_[i].comm = GYRE_TRY(plugin_.connect(context, device, handles[i]));
      if (sends_[i].comm != nullptr) --left;
    }
    for (size_t i = 0; i < listening.size(); ++i) {
      if (receives_[i].comm != nullptr) continue;
      receives_[i].comm = GYRE_TRY(plugin_.accept(listening[i]));
      if (receives_[i].comm != nullptr) --left;
    }
    if (left < before)
      patience.moved();
    else
      GYRE_TRY(patience.wait("connections"));
  }
  patience.moved();
  return {};
}

Status NetConnections::close() {
  for (NetComm& send : sends_) {
    if (send.comm != nullptr) GYRE_TRY(plugin_.close_send(std::exchange(send.comm, nullptr)));
  }
  for (NetComm& receive : receives_) {
    if (receive.comm != nullptr) GYRE_TRY(plugin_.close_recv(std::exchange(receive.comm, nullptr)));
  }
  return {};
}

NetConnections::~NetConnections() {
  if (const Status closed = close(); !closed) fmt::print(stderr, "gyre-perf: {}\n", closed.error().what);
}

}  // namespace gyre::perf
