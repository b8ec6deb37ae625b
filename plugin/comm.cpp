#include "plugin/comm.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "base/log.h"
#include "plugin/process.h"

namespace gyre::plugin {
namespace {

constexpr const char* gave_up = "the connection was given up";
constexpr int looks_at_memory = 8;
// What the peer sent before its end may still be on its way: by another TCP connection, of which a lost packet is sent again after 0.2 s.
constexpr std::chrono::milliseconds last_words{1000};
constexpr size_t most_copied = 16 << 20;

uint64_t now_ns() { return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count()); }

/// A turn that is had within microseconds, or not.
struct Brief {
  explicit Brief(Group& group) : turn(group.turn), taken(group.turn.try_briefly()) {
    if (taken) group.count_call();
  }
  [[gnu::always_inline]] ~Brief() {
    if (taken) turn.unlock();
  }
  Brief(const Brief&) = delete;
  Brief& operator=(const Brief&) = delete;
  Turn& turn;
  const bool taken;
};

Error wrong_direction(const char* call) {
  return Error{Code::invalid_argument, fmt::format("{}: this connection is of the other direction", call)};
}

Error unregistered(const char* call, size_t bytes) {
  return Error{Code::invalid_argument, fmt::format("{}: {} bytes without a registration, which this connection needs", call, bytes)};
}

}  // namespace

Comm::Comm(std::shared_ptr<Group> group, WayKind way, Direction direction, std::unique_ptr<transport::Endpoint> endpoint, Control control,
           const std::string& peer)
    : group_(std::move(group)),
      way_(way),
      direction_(direction),
      endpoint_(std::move(endpoint)),
      registered_only_(!endpoint_->takes_any_memory()),
      runs_ahead_(!endpoint_->sends_await_receives()),
      times_(group_->process().times()),
      looks_(is_local(way) ? looks_at_memory : 1),
      control_(std::move(control)),
      peer_(fmt::format("{} at {}", peer, control_.peer())) {
  free_.reserve(requests_.size());
  for (Request& request : requests_) {
    request.comm = this;
    free_.push_back(&request);
  }
  group_->watch(*this);
  group_->process().stats().opened({.direction = direction == Direction::sends ? "send" : "receive",
                                    .device = group_->device_name(),
                                    .way = std::string(group_->name_of(way)),
                                    .peer = peer_,
                                    .address = control_.peer()},
                                   counters_);
}

Comm::~Comm() {
  group_->process().stats().closed(counters_);
  group_->forget(*this);
}

inline Request* Comm::take() {
  if (free_.empty()) return nullptr;
  Request* request = free_.back();
  free_.pop_back();
  request->in_use = true;
  request->count = 0;
  request->flushes = false;
  if (times_) request->posted_ns = now_ns();
  return request;
}

[[gnu::always_inline]] inline void Comm::give(Request& request) {
  if (request.flushes) [[unlikely]]
    give_flushes(request);
  for (uint8_t i = 0; i < request.count; ++i) {
    transport::Request* part = request.parts[i];
    if (runs_ahead_) forget_synchronous(part);
    if (part) endpoint_->release(part);
  }
  request.in_use = false;
  free_.push_back(&request);
}

void Comm::give_flushes(Request& request) {
  for (uint8_t i = 0; i < request.count; ++i) (*group_->worker(way_))->release_flush(request.parts[i]);
  request.count = 0;
}

void Comm::forget_synchronous(const transport::Request* part) {
  for (Lane& lane : lanes_)
    if (part == lane.synchronous) lane.synchronous = nullptr;
}

Comm::Lane& Comm::lane(int tag) {
  if (last_lane_ < lanes_.size() && lanes_[last_lane_].tag == tag) return lanes_[last_lane_];
  const auto found = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& lane) { return lane.tag == tag; });
  last_lane_ = static_cast<size_t>(found - lanes_.begin());
  if (found == lanes_.end()) lanes_.push_back({tag});
  return lanes_[last_lane_];
}

// Room comes by progress, which the caller, who will call again, expects of us.
Request* Comm::no_room() {
  counters_.retries.add(1);
  group_->progress();
  group_->idle();
  return nullptr;
}

inline transport::Request* Comm::post(const Request& request, bool synchronous) {
  const std::span<const std::byte> message(static_cast<const std::byte*>(request.data), request.bytes);
  const auto tag = static_cast<uint32_t>(request.tag);
  const transport::Memory* registered = request.memory[0] ? request.memory[0]->registration.get() : nullptr;
  return synchronous ? endpoint_->send_synchronous(tag, message, registered) : endpoint_->send(tag, message, registered);
}

Result<Request*> Comm::send(const void* data, size_t bytes, int tag, const Memory* memory) {
  const Brief turn(*group_);
  if (!turn.taken) return nullptr;
  if (failure_) [[unlikely]]
    return *failure_;
  if (direction_ != Direction::sends) return wrong_direction("isend");
  bool synchronous = false;
  if (runs_ahead_) {
    const Lane& own = lane(tag);
    const bool many = way_ == WayKind::by_copies && own.bytes_since + bytes > most_copied;
    synchronous = many || own.since_synchronous + 1 >= max_requests;
    if (synchronous && own.synchronous != nullptr && !own.synchronous->done) return no_room();
  }
  if (registered_only_ && !memory && bytes > 0) [[unlikely]]
    return unregistered("isend", bytes);
  Request* request = take();
  if (!request) return no_room();
  request->memory[0] = memory;
  request->bytes = bytes;
  request->data = data;
  request->tag = tag;
  const bool behind = !waiting_.empty() && waits(tag);
  auto* part = behind ? nullptr : post(*request, synchronous);
  if (runs_ahead_) {
    if (!part) {
      give(*request);
      return no_room();
    }
    note_ahead(lane(tag), bytes, synchronous ? part : nullptr);
  }
  request->parts[0] = part;
  request->count = 1;
  if (!part) wait(*request);
  return request;
}

void Comm::note_ahead(Lane& lane, size_t bytes, transport::Request* synchronous) {
  lane.since_synchronous = synchronous ? 0 : lane.since_synchronous + 1;
  lane.bytes_since = synchronous ? 0 : lane.bytes_since + bytes;
  if (synchronous) lane.synchronous = synchronous;
}

bool Comm::waits(int tag) const {
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const Request* request) { return request->tag == tag; });
}

void Comm::wait(Request& request) {
  if (waiting_.empty()) group_->add_waiting(*this);
  waiting_.push_back(&request);
}

// Of each tag the first that can't be handed over holds up the others.
bool Comm::hand_over() {
  if (failure_) waiting_.clear();
  blocked_.clear();
  std::erase_if(waiting_, [&](Request* request) {
    if (std::find(blocked_.begin(), blocked_.end(), request->tag) != blocked_.end()) return false;
    request->parts[0] = post(*request, false);
    if (!request->parts[0]) blocked_.push_back(request->tag);
    return request->parts[0] != nullptr;
  });
  return waiting_.empty();
}

Result<Request*> Comm::receive(const Receives& receives) {
  const Brief turn(*group_);
  if (!turn.taken) return nullptr;
  if (failure_) [[unlikely]]
    return *failure_;
  if (direction_ != Direction::receives) return wrong_direction("irecv");
  for (size_t i = 0; i < receives.data.size(); ++i)
    if (receives.data[i] == nullptr && receives.bytes[i] > 0) [[unlikely]]
      return Error{Code::invalid_argument, fmt::format("data[{}] is null", i)};
  for (size_t i = 0; i < receives.data.size() && registered_only_; ++i)
    if (receives.memory[i] == nullptr && receives.bytes[i] > 0) [[unlikely]]
      return unregistered("irecv", receives.bytes[i]);
  if (endpoint_->receive_room() < receives.data.size()) return no_room();
  Request* request = take();
  if (!request) return no_room();
  for (size_t i = 0; i < receives.data.size(); ++i) {
    const std::span<std::byte> place(static_cast<std::byte*>(receives.data[i]), receives.bytes[i]);
    const auto* memory = static_cast<const Memory*>(receives.memory[i]);
    const transport::Endpoint::Group group{static_cast<uint8_t>(receives.data.size()), static_cast<uint8_t>(i)};
    auto* part = endpoint_->receive(static_cast<uint32_t>(receives.tags[i]), place, memory ? memory->registration.get() : nullptr, group);
    if (!part) return fail({Code::internal, fmt::format("no request left for part {} of {}", i, receives.data.size())});
    request->parts[i] = part;
    request->memory[i] = memory;
    request->count = static_cast<uint8_t>(i + 1);
  }
  return request;
}

// A flush can't be tried again: null means that there is nothing to wait for. So this waits for its turn, which is short.
Result<Request*> Comm::flush(std::span<void* const> data, std::span<const int> bytes, void* const* memory) {
  const std::lock_guard turn(group_->turn);
  if (failure_) return *failure_;
  if (direction_ != Direction::receives) return wrong_direction("iflush");
  auto* worker = GYRE_TRY(group_->worker(way_));
  Request* request = nullptr;
  for (size_t i = 0; i < data.size(); ++i) {
    const auto* registered = static_cast<const Memory*>(memory[i]);
    if (bytes[i] == 0 || registered == nullptr) continue;
    auto* part = GYRE_TRY(worker->flush(*registered->registration, static_cast<const std::byte*>(data[i])));
    if (!part) continue;
    if (!request && (request = take()) == nullptr) return fail({Code::internal, "no request left"});
    request->flushes = true;
    request->memory[request->count] = registered;
    request->parts[request->count++] = part;
  }
  return request;
}

inline bool Comm::look_for(const Request& request) {
  for (int looks = failure_ ? 0 : looks_; looks > 0; --looks) {
    group_->progress();
    if (request.done()) return true;
  }
  group_->idle();
  return false;
}

[[gnu::always_inline]] inline Result<bool> Comm::finish(Request& request, int* sizes) {
  for (uint8_t i = 0; i < request.count; ++i) {
    const auto& part = *request.parts[i];
    if (part.failure) [[unlikely]]
      return fail(failure_of(part));
    if (request.flushes) continue;
    const size_t bytes = direction_ == Direction::sends ? request.bytes : part.bytes;
    if (sizes) sizes[i] = static_cast<int>(std::min<size_t>(bytes, INT_MAX));
    counters_.bytes.add(bytes);
  }
  if (!request.flushes) counters_.messages.add(request.count);
  if (times_) counters_.waited_ns.add(now_ns() - request.posted_ns);
  give(request);
  return true;
}

Result<bool> Comm::test(Request& request, int* sizes) {
  const Brief turn(*group_);
  if (!turn.taken) return false;
  if (!request.in_use) [[unlikely]]
    return Error{Code::invalid_argument, "this request is done and gone already"};
  // What was done before the connection was lost stays done.
  if (!request.done() && !look_for(request)) {
    if (failure_) return *failure_;
    return false;
  }
  return finish(request, sizes);
}

// The kernel tells better than UCX what has become of the peer.
Error Comm::failure_of(const transport::Request& part) {
  look();
  const bool gone = !control_.ended().empty() && !peer_left_;
  const std::string why =
      gone ? fmt::format("{} ({}: {})", control_.ended(), way_ == WayKind::verbs ? "verbs" : "UCX", part.failure) : part.failure;
  return {part.code, fmt::format("connection {} {}: {}", direction_ == Direction::sends ? "to" : "from", peer_, why)};
}

Error Comm::fail(Error error) {
  if (!failure_) {
    counters_.errors.add(1);
    failure_ = std::move(error);
    endpoint_->break_off(gave_up);
    control_.hang_up();
  }
  return *failure_;
}

void Comm::lose(const std::string& why) {
  (void)fail({Code::remote, fmt::format("connection {} {} is lost: {}", direction_ == Direction::sends ? "to" : "from", peer_, why)});
}

void Comm::look() {
  while (const auto frame = control_.receive()) {
    if (static_cast<Word>(frame->kind) == Word::farewell)
      peer_left_ = true;
    else  // such as a refusal: it has not become a connection there
      lose(fmt::format("it sent message {} when all was said", frame->kind));
  }
  if (control_.ended().empty()) return;
  group_->unwatch(*this);  // there is nothing more to hear
  const bool goes_on = control_.silent() && endpoint_->outlives_tcp();
  if (!peer_left_ && !goes_on) note_loss(control_.ended());
}

void Comm::note_loss(const std::string& why) {
  if (lost_at_) return;
  lost_at_ = std::chrono::steady_clock::now();
  lost_why_ = why;
}

void Comm::look_after(std::chrono::steady_clock::time_point now) {
  if (failure_) return;
  // Receives end with the endpoint; sends that the peer had begun to take may not.
  if (direction_ == Direction::sends && endpoint_->failure()) note_loss(endpoint_->failure());
  if (lost_at_ && now - *lost_at_ >= last_words) lose(lost_why_);
  if (group_->stopped(way_)) lose("its transport was stopped, since it could not call back what was under way on another connection");
}

Result<Memory*> Comm::register_memory(void* data, size_t bytes, MemoryKind kind, const transport::DmaBuf* dmabuf) {
  if (kind == MemoryKind::cuda && !GYRE_TRY(group_->process().properties(group_->key.device)).cuda)
    return Error{Code::invalid_usage, fmt::format("{} takes no CUDA memory, and says so", group_->members().front().name)};
  transport::Worker* worker = nullptr;
  {
    const std::lock_guard turn(group_->turn);
    worker = GYRE_TRY(group_->worker(way_));
  }
  auto* memory = GYRE_TRY(group_->memory().add(*worker, data, bytes, kind, dmabuf));
  const std::lock_guard turn(group_->turn);
  registered_.push_back(memory);
  return memory;
}

bool Comm::uses(const Memory* memory) const {
  return std::any_of(requests_.begin(), requests_.end(), [&](const Request& request) {
    const auto end = request.memory.begin() + request.count;
    return request.in_use && !request.done() && std::find(request.memory.begin(), end, memory) != end;
  });
}

Status Comm::deregister(Memory* memory) {
  {
    const std::lock_guard turn(group_->turn);
    const auto found = std::find(registered_.begin(), registered_.end(), memory);
    if (found == registered_.end())
      return Error{Code::invalid_argument, fmt::format("{} is no registration of this connection", static_cast<void*>(memory))};
    registered_.erase(found);
    const bool last = std::find(registered_.begin(), registered_.end(), memory) == registered_.end();
    if (last && uses(memory)) {
      lose("it was aborted: memory of an unfinished request was deregistered");
      endpoint_->let_go();
    }
  }
  const std::lock_guard turn(group_->turn);  // its keys are the worker's, which has one thread at a time
  return group_->memory().give_back(memory);
}

void Comm::close(std::unique_ptr<Comm> comm) {
  const auto group = comm->group_;  // must outlive the turn
  const std::lock_guard turn(group->turn);
  const bool idle = std::all_of(comm->requests_.begin(), comm->requests_.end(), [](const Request& r) { return !r.in_use || r.done(); });
  if (!idle) {
    comm->lose("it was closed with requests under way");
    comm->endpoint_->let_go();
  }
  if (!comm->failure_) comm->look();  // what lies unread would make the kernel reset the connection instead of ending it
  if (!comm->failure_) {
    comm->control_.send(static_cast<uint32_t>(Word::farewell), {});
    comm->endpoint_->start_close();
  }
  group->retire(std::move(comm->endpoint_));
  for (Memory* memory : comm->registered_) (void)group->memory().give_back(memory);
  comm.reset();
}

}  // namespace gyre::plugin
