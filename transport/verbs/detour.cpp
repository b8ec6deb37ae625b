#include "transport/verbs/detour.h"

#include <cstring>
#include <utility>

namespace gyre::transport::verbs {
namespace {

constexpr uint64_t note_tag = 1, data_tag = uint64_t{1} << 32U;
constexpr const char* nonsense = "what came over TCP instead is no message of gyre's";

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

Detour::Detour(std::unique_ptr<Endpoint> endpoint, Receiver& receiver) : endpoint_(std::move(endpoint)), receiver_(receiver) {
  for (auto& [note, request] : awaited_) note.resize(longest_note);
}

Detour::~Detour() { endpoint_.reset(); }

void Detour::stop() {
  endpoint_->break_off("the connection goes another way");
  endpoint_->let_go();
  waiting_.clear();
  notes_.clear();
  data_.clear();
  arriving_.clear();
}

void Detour::add(const Header& header, std::span<const std::byte> body) {
  ++notes_added_;
  Note note(sizeof header + body.size());
  std::memcpy(note.data(), &header, sizeof header);
  if (!body.empty()) std::memcpy(note.data() + sizeof header, body.data(), body.size());
  waiting_.push_back(std::move(note));
  send_waiting();
}

void Detour::send(const Credit& credit) { add({Kind::credit}, bytes_of(credit)); }
void Detour::send(const Mail& mail) { add({Kind::mail}, bytes_of(mail)); }
void Detour::send(Immediate told, uint32_t bytes) { add({Kind::word, told.bits(), 0, bytes}, {}); }

void Detour::send(Immediate told, uint64_t offset, std::span<const std::byte> data, Request* owner, uint8_t piece) {
  if (data.empty()) {  // it has no place, and its word is all there is
    data_.push_back({data, notes_added_ + 1, owner, piece});
    return add({Kind::word, told.bits()}, {});
  }
  data_.push_back({data, sent_pieces_++, owner, piece});
  add({Kind::piece, told.bits(), offset, data.size(), data_.back().number}, {});
}

void Detour::send_waiting() {
  while (!waiting_.empty()) {
    notes_.emplace_back(std::move(waiting_.front()), nullptr);
    auto& [note, request] = notes_.back();
    request = endpoint_->send_synchronous(note_tag, note, nullptr);
    if (!request) {
      waiting_.front() = std::move(note);
      notes_.pop_back();
      return;
    }
    waiting_.pop_front();
  }
  for (Data& data : data_)
    if (!data.request && !data.bytes.empty()) data.request = endpoint_->send_synchronous(data_tag + data.number, data.bytes, nullptr);
}

const char* Detour::progress() {
  if (const char* why = endpoint_->failure()) return why;
  send_waiting();
  for (const auto step : {&Detour::sent, &Detour::receive_notes, &Detour::receive_data})
    if (const char* why = (this->*step)()) return why;
  return nullptr;
}

const char* Detour::sent() {
  for (auto note = notes_.begin(); note != notes_.end();) {
    if (!note->second->done) break;
    const char* why = note->second->failure;
    endpoint_->release(note->second);
    note = notes_.erase(note);
    ++notes_done_;
    ++steps_;
    if (why) return why;
  }
  for (auto data = data_.begin(); data != data_.end();) {
    if (data->bytes.empty() && data->number <= notes_done_) {
      const Data done = *data;
      data = data_.erase(data);
      receiver_.taken(done.owner, done.piece);
      continue;
    }
    if (!data->request || !data->request->done) {
      ++data;
      continue;
    }
    const Data done = *data;
    const char* why = done.request->failure;
    endpoint_->release(done.request);
    data = data_.erase(data);
    ++steps_;
    if (why) return why;
    receiver_.taken(done.owner, done.piece);
  }
  return nullptr;
}

const char* Detour::receive_notes() {
  while (true) {
    for (size_t i = 0; i < notes_awaited; ++i) {
      auto& [note, request] = awaited_[(next_ + i) % notes_awaited];
      if (!request) request = endpoint_->receive(note_tag, note, nullptr);
    }
    auto& [note, request] = awaited_[next_];
    if (!request || !request->done) return nullptr;
    const size_t bytes = request->bytes;
    const char* why = request->failure;
    endpoint_->release(std::exchange(request, nullptr));
    ++steps_;
    if (!why) why = take(std::span<const std::byte>(note).first(bytes));
    if (why) return why;
    next_ = (next_ + 1) % notes_awaited;
  }
}

const char* Detour::take(std::span<const std::byte> note) {
  Header header;
  if (note.size() < sizeof header) return nonsense;
  std::memcpy(&header, note.data(), sizeof header);
  const auto body = note.subspan(sizeof header);
  const auto told = Immediate::of(header.immediate);
  if (header.kind == Kind::credit && body.size() == sizeof(Credit)) {
    Credit credit;
    std::memcpy(&credit, body.data(), sizeof credit);
    receiver_.take_credit(credit);
  } else if (header.kind == Kind::mail && body.size() == sizeof(Mail)) {
    Mail mail;
    std::memcpy(&mail, body.data(), sizeof mail);
    receiver_.take_mail(mail);
  } else if (header.kind == Kind::word && body.empty()) {
    receiver_.take_word(told, static_cast<uint32_t>(header.bytes));
  } else if (header.kind == Kind::piece && body.empty()) {
    std::byte* place = receiver_.place_of(told, header.offset, header.bytes);
    if (!place && header.bytes > 0) return nonsense;
    arriving_.push_back({told, {place, header.bytes}, header.number, nullptr});
  } else {
    return nonsense;
  }
  return nullptr;
}

const char* Detour::receive_data() {
  for (auto one = arriving_.begin(); one != arriving_.end();) {
    if (!one->request) one->request = endpoint_->receive(data_tag + one->number, one->place, nullptr);
    if (!one->request || !one->request->done) {
      ++one;
      continue;
    }
    const Arriving done = *one;
    const size_t bytes = done.request->bytes;
    const char* why = done.request->failure;
    endpoint_->release(done.request);
    one = arriving_.erase(one);
    ++steps_;
    if (!why && bytes != done.place.size()) why = nonsense;
    if (why) return why;
    receiver_.take_word(done.told, static_cast<uint32_t>(bytes));
  }
  return nullptr;
}

}  // namespace gyre::transport::verbs
