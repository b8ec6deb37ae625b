// A message's way: it is sent, departs, goes through the ports, leaves them and arrives.
#include <algorithm>

#include "schedule/simulator.h"

namespace gyre::schedule {

void Simulator::send(uint32_t number, uint32_t id) {
  const StepTime& time = result_.steps[number];
  const Step& step = schedule_.programs[time.program].steps[time.position.cursor.step];
  TimedConnection& connection = connections_[id];
  const auto message = static_cast<uint32_t>(messages_.size());
  // As in the proof: what lies in user memory is read from there, what lies nowhere goes out from a slot.
  const Chunks source = step.dst.present() ? step.dst : step.sources() == 1 ? step.src : Chunks{};
  messages_.push_back({id, source, time.position.cursor.slice});
  result_.messages.push_back(
      {number, Link::nobody, connection.link.from, connection.link.to, connection.route.link_class, bytes(step), 0, 0, 0, {}});
  if (held()) hold(message, true);
  if (posted() && connection.sent >= connection.announced) {
    connection.unannounced.push_back(message);
  } else {
    depart(message);
  }
  ++connection.sent;
}

// The messages of a connection go one after the other.
void Simulator::depart(uint32_t message) {
  const uint32_t id = messages_[message].connection;
  TimedConnection& connection = connections_[id];
  const uint32_t kind = connection.route.link_class;
  if (network_.classes[kind].by_processor) return transfer(message);
  connection.departing.push_back(message);
  if (connection.departing.size() > 1) return;
  if (ports_.take(id, ports_.ends(network_, kind, connection.link.from, connection.link.to))) transfer(message);
}

void Simulator::transfer(uint32_t message) {
  const Route& route = connections_[messages_[message].connection].route;
  MessageTime& time = result_.messages[message];
  time.departure = now_;
  time.cause = cause_;
  if (network_.classes[route.link_class].by_processor) return leave(message);
  time.left = now_ + delayed(time.bytes * route.beta, identity_of(Delayed::transfer, message));
  events_.add(time.left, Event::Kind::port_free, message);
}

void Simulator::leave(uint32_t message) {
  const uint32_t id = messages_[message].connection;
  TimedConnection& connection = connections_[id];
  const LinkClass& links = network_.classes[connection.route.link_class];
  MessageTime& time = result_.messages[message];
  time.left = now_;
  time.arrival = std::max(connection.last_arrival, now_ + delayed(links.alpha, identity_of(Delayed::latency, message)));
  connection.last_arrival = time.arrival;
  events_.add(time.arrival, Event::Kind::arrival, message);
  if (links.by_processor) return;
  cause_ = {Cause::Kind::port, message};
  connection.departing.pop_front();
  if (!connection.departing.empty()) ports_.wait(id);
  ports_.release(id, time.left - time.departure, [this](uint32_t next) { transfer(connections_[next].departing.front()); });
}

void Simulator::arrive(uint32_t message) {
  TimedConnection& connection = connections_[messages_[message].connection];
  connection.arrived.push_back(message);
  cause_ = {Cause::Kind::arrival, message};
  wake(connection.link.receiver);
  if (!posted()) return;
  cause_ = {Cause::Kind::completion, message};
  hold(message, false);
}

void Simulator::hold(uint32_t message, bool begin) {
  const TimedMessage& held = messages_[message];
  const Rank rank = result_.messages[message].from;
  for (uint32_t i = 0; i < held.source.count; ++i) {
    uint32_t& count = readers(rank, held.source, i, held.slice);
    begin ? ++count : --count;
  }
  if (!begin) wake_channel(rank, schedule_.programs[connections_[held.connection].link.sender].channel);
}

uint32_t& Simulator::readers(Rank rank, const Chunks& chunks, uint32_t i, uint32_t slice) {
  const size_t cell = static_cast<size_t>(rank) * cells_.count() + cells_.of(rank, chunks.buffer, chunks[i]);
  return readers_[cell * trial_.conditions.slices + slice];
}

uint64_t Simulator::identity_of(Delayed what, uint32_t message) const {
  const StepTime& sender = result_.steps[result_.messages[message].sender];
  return identity(what, sender.program, sender.position, result_.messages[message].to);
}

}  // namespace gyre::schedule
