// A peer of the net plugin that a test plays by hand, frame by frame, as far as it wants that to come.
#pragma once
#include <functional>

#include "test/plugin/joined.h"

namespace gyre::test {

/// Its next frame, or none where the connection ended.
inline std::optional<plugin::Frame> heard(plugin::Control& control, const std::function<void()>& meanwhile) {
  std::optional<plugin::Frame> frame;
  REQUIRE(becomes([&] { return meanwhile(), (frame = control.receive()) || !control.ended().empty(); }));
  return frame;
}

inline void say(plugin::Control& control, plugin::Word word, const std::string& bytes) { control.send(static_cast<uint32_t>(word), bytes); }

struct HandSender {
  explicit HandSender(Meeting& meeting) : content(*plugin::read_handle(meeting.handle)), identity(plugin::Identity::self("by hand")) {
    control = plugin::Control::to(content.address, std::chrono::seconds(5));
  }
  void greet() { say(control, plugin::Word::hello, plugin::encode(plugin::Hello{content.cookie, 77, identity})); }
  plugin::HandleContent content;
  plugin::Identity identity;
  plugin::Control control;
};

/// To which a sender connects.
struct HandReceiver {
  explicit HandReceiver(Host& from) : from_(from), listening(*transport::listen_at(loopback_address(1))) {
    plugin::write_handle(handle, {cookie, listening.address});
    poll();
    UniqueFd fd;
    REQUIRE(becomes([&] { return poll(), bool(fd = transport::accept_at(listening)); }));
    control = plugin::Control(std::move(fd), std::chrono::seconds(5));
    const auto hello = heard(control, [&] { poll(); });
    REQUIRE(hello);
    REQUIRE(plugin::decode_hello(hello->bytes)->cookie == cookie);
  }
  void poll() {
    if (error) return;
    auto made = from_.process.connect(from_.context(), 0, handle);
    if (!made)
      error = made.error();
    else
      REQUIRE(*made == nullptr);
  }
  void offer(uint32_t ways, uint64_t tuner_file = 0) {
    say(control, plugin::Word::offer, plugin::encode(plugin::Offer{ways, plugin::Identity::self("by hand", tuner_file)}));
  }
  bool fails() {
    return becomes([&] { return poll(), error.has_value(); });
  }

  Host& from_;
  plugin::Cookie cookie{'c'};
  plugin::ListeningSocket listening;
  HandleBytes handle;
  plugin::Control control;
  std::optional<Error> error;
};

}  // namespace gyre::test
