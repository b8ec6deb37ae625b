#include "test/plugin/fake_net.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <new>
#include <stdexcept>

namespace gyre::plugin {

class Context {
 public:
  int number;
};
class ListenComm {
 public:
  int number;
};
class Comm {
 public:
  int number;
};
class Memory {
 public:
  int number;
};
class Request {
 public:
  int number;
};

namespace {

/// A new object, never freed: the rim may hold on to it beyond a test.
template <class Object>
Object* numbered(int number) {
  static auto& objects = *new std::deque<Object>;
  objects.push_back({number});
  return &objects.back();
}
Request only_request{1};
int contexts_opened = 0;  // never starts anew: the rim keeps some

template <class Object>
int number_of(const Object* object) {
  return object == nullptr ? 0 : object->number;
}
std::string numbers_of(void* const* memory, size_t count) {
  std::string text;
  if (fake_net().silent) return text;
  for (size_t i = 0; i < count; ++i) text += fmt::format(" {}", number_of(static_cast<const Memory*>(memory[i])));
  return text;
}

template <class... Args>
Status called(fmt::format_string<Args...> format, Args&&... args) {
  FakeNet& fake = fake_net();
  if (!fake.silent) fake.calls.push_back(fmt::format(format, std::forward<Args>(args)...));
  switch (fake.thrown) {
    case Thrown::nothing:
      break;
    case Thrown::out_of_memory:
      throw std::bad_alloc();
    case Thrown::exception:
      throw std::runtime_error("a bug");
    case Thrown::number:
      throw 5;
  }
  if (fake.error) return *fake.error;
  return {};
}

std::map<int, int>& process_contexts_of() {
  static std::map<int, int> numbers;
  return numbers;
}

/// Listen's mark on the first and the last byte of the handle.
Status stamp(Handle handle, int device) {
  handle[0] = static_cast<std::byte>(device);
  handle[handle_bytes - 1] = std::byte{0x5a};
  return {};
}

}  // namespace

FakeNet& fake_net() {
  static FakeNet fake;
  return fake;
}

int process_contexts(int traffic_class) { return process_contexts_of()[traffic_class]; }

Result<Context*> open(uint64_t communicator, int traffic_class) {
  GYRE_TRY(called("open {} class {}", communicator, traffic_class));
  if (communicator == 0) ++process_contexts_of()[traffic_class];
  return numbered<Context>(++contexts_opened);
}
Status finalize(Context* context) { return called("finalize {}", number_of(context)); }

void loaded_again() {}

Result<int> devices() {
  GYRE_TRY(called("devices"));
  return fake_net().device_count;
}
Result<Properties> properties(int device) {
  GYRE_TRY(called("properties {}", device));
  return fake_net().properties;
}
Result<int> make_virtual_device(std::span<const int> members) {
  GYRE_TRY(called("make_virtual_device {}", fmt::join(members, " ")));
  return fake_net().device_count;
}

Result<ListenComm*> listen(Context* context, int device, Handle handle) {
  const bool zeroed = std::all_of(handle.begin(), handle.end(), [](std::byte byte) { return byte == std::byte{0}; });
  GYRE_TRY(called("listen context {} device {}{}", number_of(context), device, zeroed ? "" : ", handle not empty"));
  GYRE_TRY(stamp(handle, device));
  return numbered<ListenComm>(++fake_net().listeners);
}
Result<SendComm*> connect(Context* context, int device, Handle handle) {
  GYRE_TRY(called("connect context {} device {} handle {}..{}", number_of(context), device, int(handle[0]), int(handle[handle_bytes - 1])));
  return fake_net().not_yet ? nullptr : numbered<SendComm>(++fake_net().comms);
}
Result<RecvComm*> accept(ListenComm* listener) {
  GYRE_TRY(called("accept {}", number_of(listener)));
  return fake_net().not_yet ? nullptr : numbered<RecvComm>(++fake_net().comms);
}

Result<Memory*> register_memory(Comm* comm, void*, size_t bytes, MemoryKind kind, const transport::DmaBuf* dmabuf) {
  GYRE_TRY(called("register {} {} {}{}", number_of(comm), bytes, kind == MemoryKind::cuda ? "cuda" : "host",
                  dmabuf ? fmt::format(" by descriptor {} at {}", dmabuf->fd, dmabuf->offset) : ""));
  return numbered<Memory>(++fake_net().memories);
}
Status deregister(Comm* comm, Memory* memory) { return called("deregister {} {}", number_of(comm), number_of(memory)); }

Result<Request*> send(SendComm* comm, const void* data, size_t bytes, int tag, Memory* memory) {
  GYRE_TRY(called("send {} {}{} tag {} memory {}", number_of(comm), bytes, data == nullptr ? " from null" : "", tag, number_of(memory)));
  return fake_net().not_yet ? nullptr : &only_request;
}
Result<Request*> receive(RecvComm* comm, const Receives& receives) {
  GYRE_TRY(called("receive {} of {}: {} tags {} memory{}", number_of(comm), receives.data.size(), fmt::join(receives.bytes, " "),
                  fmt::join(receives.tags, " "), numbers_of(receives.memory, receives.data.size())));
  return fake_net().not_yet ? nullptr : &only_request;
}
Result<Request*> flush(RecvComm* comm, std::span<void* const> data, std::span<const int> bytes, void* const* memory) {
  GYRE_TRY(called("flush {} of {}: {} memory{}", number_of(comm), data.size(), fmt::join(bytes, " "), numbers_of(memory, data.size())));
  return fake_net().not_yet ? nullptr : &only_request;
}
Result<bool> test(Request* request, int* sizes) {
  GYRE_TRY(called("test {}{}", number_of(request), sizes == nullptr ? " without sizes" : ""));
  if (fake_net().not_yet) return false;
  if (sizes != nullptr) std::copy(fake_net().received.begin(), fake_net().received.end(), sizes);
  return true;
}

void close(ListenComm* listener) {
  if (const Status status = called("close listener {}", number_of(listener)); !status) throw std::runtime_error("close failed");
}
void close(Comm* comm) {
  if (const Status status = called("close {}", number_of(comm)); !status) throw std::runtime_error("close failed");
}

}  // namespace gyre::plugin
