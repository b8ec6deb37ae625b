#include "transport/tcp/worker.h"

#include <fmt/format.h>

#include "transport/tcp.h"

namespace gyre::transport {
namespace tcp {

Result<std::unique_ptr<Listener>> TcpWorker::listen() {
  std::vector<ListeningSocket> sockets;
  for (const SocketAddress& address : addresses_) sockets.push_back(GYRE_TRY(listen_at(address)));
  return std::unique_ptr<Listener>(std::make_unique<TcpListener>(*this, std::move(sockets)));
}

Result<std::unique_ptr<Endpoint>> TcpWorker::connect(std::string_view address, std::string_view hello) {
  if (hello.size() > most_hello_bytes)
    return Error{Code::invalid_argument, fmt::format("tcp: a hello has at most {} bytes", most_hello_bytes)};
  return std::unique_ptr<Endpoint>(std::make_unique<TcpEndpoint>(*this, GYRE_TRY(decode(address)), hello));
}

}  // namespace tcp

Result<std::unique_ptr<Worker>> open_tcp_worker(Slots slots, std::chrono::seconds silence, int buffer_bytes) {
  auto addresses = GYRE_TRY(tcp::own_addresses());
  return std::unique_ptr<Worker>(std::make_unique<tcp::TcpWorker>(slots, std::move(addresses), tcp::Options{silence, buffer_bytes}));
}

size_t tcp_connection_bytes(const Slots& slots) { return tcp::Outgoing::footprint(slots) + tcp::Incoming::footprint(slots); }

std::vector<Device> tcp_devices() {
  if (!tcp::own_addresses()) return {};
  return {Device{"tcp", "tcp", true}};
}

std::string why_no_tcp() {
  const auto addresses = tcp::own_addresses();
  return addresses ? "tcp can be used" : "tcp cannot be used here: " + addresses.error().what;
}

}  // namespace gyre::transport
