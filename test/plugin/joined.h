// Processes of the net plugin within the test's own, over invented networks, and connections between them, made as NCCL makes them: each
// end is polled in turn.
#pragma once
#include "plugin/process.h"
#include "test/becomes.h"
#include "test/catch.h"
#include "test/plugin/loopback_provider.h"

namespace gyre::test {

class Host {
 public:
  explicit Host(int devices = 1) : provider(*new LoopbackProvider(devices)), process(std::unique_ptr<plugin::Provider>(&provider)) {}
  explicit Host(std::vector<plugin::WayKind> ways) : Host() { provider.has = std::move(ways); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() {
    if (context_) process.finalize(context_);
  }
  plugin::Context* context() { return context_ ? context_ : context_ = *process.open(1, -1); }

  LoopbackProvider& provider;  // the process's
  plugin::Process process;

 private:
  plugin::Context* context_ = nullptr;
};

struct HandleBytes {
  std::array<std::byte, plugin::handle_bytes> bytes{};
  operator plugin::Handle() { return plugin::Handle(bytes); }  // NOLINT(google-explicit-constructor): as NCCL passes it
};

/// A listener and an attempt to connect to it, of which a test polls either end.
class Meeting {
 public:
  Meeting(Host& from, Host& to, int from_device = 0, int to_device = 0) : from_(from), to_(to), from_device_(from_device) {
    listener = *to.process.listen(to.context(), to_device, handle);
  }
  ~Meeting() { to_.process.close(listener); }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  void connect() {
    if (sends || connect_error) return;
    auto made = from_.process.connect(from_.context(), from_device_, handle);
    if (made)
      sends = *made;
    else
      connect_error = made.error();
  }
  void accept() {
    if (receives || accept_error) return;
    auto made = to_.process.accept(listener);
    if (made)
      receives = *made;
    else
      accept_error = made.error();
  }
  bool over() const { return (sends || connect_error) && (receives || accept_error); }
  /// Until both ends have a connection or an error.
  Meeting& meet() {
    if (!becomes([&] { return connect(), accept(), over(); })) FAIL("the two ends do not come together");
    return *this;
  }
  /// Until the connecting end has one.
  Meeting& settle_connect() {
    if (!becomes([&] { return connect(), accept(), sends || connect_error; })) FAIL("connect does not come to an end");
    return *this;
  }

  HandleBytes handle;
  plugin::ListenComm* listener = nullptr;
  plugin::Comm *sends = nullptr, *receives = nullptr;
  std::optional<Error> connect_error, accept_error;

 private:
  Host &from_, &to_;
  int from_device_;
};

/// A connection from one process to another, and what NCCL does with it.
class Joined {
 public:
  Joined() : Joined(std::make_unique<Host>(), std::make_unique<Host>()) {}
  Joined(Host& a, Host& b, int from_device = 0, int to_device = 0) : from(a), to(b) {
    Meeting meeting(a, b, from_device, to_device);
    meeting.meet();
    if (meeting.connect_error) FAIL(meeting.connect_error->what);
    if (meeting.accept_error) FAIL(meeting.accept_error->what);
    sends = meeting.sends;
    receives = meeting.receives;
  }
  ~Joined() {
    from.process.close(sends);
    to.process.close(receives);
  }
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;

  Host &from, &to;
  plugin::Comm *sends = nullptr, *receives = nullptr;

 private:
  Joined(std::unique_ptr<Host> a, std::unique_ptr<Host> b) : Joined(*a, *b) {
    owned_[0] = std::move(a);
    owned_[1] = std::move(b);
  }
  std::array<std::unique_ptr<Host>, 2> owned_;
};

/// Null: no room. An error ends the test.
inline plugin::Request* send(plugin::Comm* comm, std::string_view text, int tag = 0, const plugin::Memory* memory = nullptr) {
  auto request = comm->send(text.data(), text.size(), tag, memory);
  if (!request) FAIL(request.error().what);
  return *request;
}

/// A grouped receive, one part per tag, of up to `capacity` bytes each.
class Receive {
 public:
  explicit Receive(plugin::Comm* comm, std::vector<int> tags = {0}, size_t capacity = 64, plugin::Memory* memory = nullptr)
      : places_(tags.size(), std::string(capacity, ' ')), sizes(tags.size(), -1) {
    std::vector<void*> data, memories(tags.size(), memory);
    for (auto& place : places_) data.push_back(place.data());
    const std::vector<size_t> bytes(tags.size(), capacity);
    auto posted = comm->receive({data, bytes, tags, memories.data()});
    if (posted)
      request = *posted;
    else
      error = posted.error();
  }
  Receive(const Receive&) = delete;
  Receive& operator=(const Receive&) = delete;

  Result<bool> test() { return request->comm->test(*request, sizes.data()); }
  /// What part i got, once done.
  std::string text(size_t i = 0) const { return places_[i].substr(0, static_cast<size_t>(sizes[i])); }
  bool untouched(size_t i = 0) const { return places_[i].find_first_not_of(' ') == std::string::npos; }

  plugin::Request* request = nullptr;
  std::optional<Error> error;

 private:
  std::vector<std::string> places_;

 public:
  std::vector<int> sizes;
};

/// Tests a request until it is done or fails; `meanwhile` is polled too.
template <class Meanwhile>
Result<bool> finish(plugin::Request* request, int* sizes, Meanwhile&& meanwhile) {
  Result<bool> done{false};
  if (!becomes([&] {
        meanwhile();
        done = request->comm->test(*request, sizes);
        return !done || *done;
      }))
    FAIL("a request does not come to an end");
  return done;
}
inline Result<bool> finish(plugin::Request* request) {
  return finish(request, nullptr, [] {});
}
inline Result<bool> finish(Receive& receive) {
  return finish(receive.request, receive.sizes.data(), [] {});
}

/// One message goes through.
inline void check_joined(plugin::Comm* sends, plugin::Comm* receives) {
  REQUIRE(sends);
  REQUIRE(receives);
  Receive receive(receives);
  auto* request = send(sends, "a message");
  REQUIRE(request);
  CHECK(finish(receive));
  CHECK(receive.text() == "a message");
  CHECK(finish(request));
}

inline bool contains(const std::optional<Error>& error, std::string_view text) {
  return error && error->what.find(text) != std::string::npos;
}

}  // namespace gyre::test
