#include "transport/verbs/events.h"

#include <fmt/format.h>

#include <optional>

namespace gyre::transport::verbs {
namespace {

std::optional<RailEvent> event_of(const ibv_async_event& told, uint8_t port) {
  using Kind = RailEvent::Kind;
  const auto of_port = [&](Kind kind) {
    return told.element.port_num == port ? std::optional(RailEvent{kind, 0, told.event_type}) : std::nullopt;
  };
  switch (told.event_type) {
    case IBV_EVENT_PORT_ERR:
      return of_port(Kind::port_down);
    case IBV_EVENT_PORT_ACTIVE:
      return of_port(Kind::port_up);
    case IBV_EVENT_GID_CHANGE:
      return of_port(Kind::gid_change);
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
      return of_port(Kind::lid_change);
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
      return RailEvent{Kind::device_fatal, 0, told.event_type};
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return RailEvent{Kind::pair_failed, told.element.qp->qp_num, told.event_type};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<RailEvent> read_events(ibv_context* context, uint8_t port) {
  std::vector<RailEvent> events;
  ibv_async_event told;
  while (api().get_async_event(context, &told) == 0) {
    if (const auto event = event_of(told, port)) events.push_back(*event);
    api().ack_async_event(&told);  // before anything is closed: closing a queue pair waits for it
  }
  return events;
}

std::string words(const RailEvent& event, const std::string& rail) {
  switch (event.type) {
    case IBV_EVENT_PORT_ERR:
      return fmt::format("{}: the port is down: its cable, the switch or the peer's end", rail);
    case IBV_EVENT_PORT_ACTIVE:
      return fmt::format("{}: the port is active", rail);
    case IBV_EVENT_GID_CHANGE:
      return fmt::format("{}: the port's addresses have changed; connections that are there keep the old ones", rail);
    case IBV_EVENT_LID_CHANGE:
      return fmt::format("{}: the subnet manager has changed the port's LID; connections that use the old one may fail", rail);
    case IBV_EVENT_PKEY_CHANGE:
      return fmt::format("{}: the port's table of partition keys has changed", rail);
    case IBV_EVENT_SM_CHANGE:
      return fmt::format("{}: another subnet manager manages the port", rail);
    case IBV_EVENT_CLIENT_REREGISTER:
      return fmt::format("{}: the subnet manager has started anew", rail);
    case IBV_EVENT_DEVICE_FATAL:
      return fmt::format("{}: fatal error of the device: nothing can be sent by it until it has been reset; dmesg may say why", rail);
    case IBV_EVENT_CQ_ERR:
      return fmt::format("{}: the completion queue has overrun or broken: every connection by this port is lost", rail);
    case IBV_EVENT_QP_FATAL:
      return fmt::format("{}: queue pair {}: fatal error of the device", rail, event.pair);
    case IBV_EVENT_QP_REQ_ERR:
      return fmt::format("{}: queue pair {}: the peer sent what it may not, or in the wrong order", rail, event.pair);
    case IBV_EVENT_QP_ACCESS_ERR:
      return fmt::format("{}: queue pair {}: the peer reached for memory that is not registered for it (any more)", rail, event.pair);
    default:
      return fmt::format("{}: event {}", rail, static_cast<int>(event.type));
  }
}

}  // namespace gyre::transport::verbs
