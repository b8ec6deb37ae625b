#include "transport/shm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "transport/shared_memory.h"
#include "transport/slot_fifo.h"

namespace gyre::transport {
namespace {

// A letter goes free -> writing -> posted -> free; the answer is in the connection's own memory. Where the listener can't open that, the
// letter says so: posted -> unreadable, and its writer frees it.
enum Letter : uint32_t { free_letter, writing, posted, unreadable };
struct alignas(64) MailboxEntry {
  std::atomic<uint32_t> state;
  char address[108];  // of the memory in which the connection lies, ends with a zero
  uint64_t offset;    // where in it
  uint64_t bytes;
};
static_assert(sizeof(MailboxEntry) == 128);
constexpr size_t mailbox_entries = 256;

enum Answer : uint32_t { unanswered, accepted, refused };
struct alignas(64) ConnectionHeader {
  std::atomic<uint32_t> answer;
  uint32_t credits;
  uint64_t slot_bytes;
  uint32_t hello_bytes;
  char hello[64];
};
constexpr size_t connection_header_bytes = SlotRing::page;

// Whole pages, so that one connection's memory can lie behind another's.
size_t connection_bytes(const Slots& slots) {
  constexpr size_t page = SlotRing::page;
  return connection_header_bytes + (2 * SlotRing::footprint(slots) + page - 1) / page * page;
}

// A connection's part of a memory. Shared: a rank's connections lie in one memory, since each memory costs it a descriptor, and any of them
// may be the last to go.
struct Part {
  std::shared_ptr<SharedMemory> memory;
  size_t offset = 0;

  std::byte* data() const { return memory->data() + offset; }
};

class ShmEndpoint final : public Endpoint {
 public:
  // side 0 connects, side 1 accepts. `mailbox`: of the listener, on side 0. `failure`: the worker's.
  ShmEndpoint(Part part, std::unique_ptr<SharedMemory> mailbox, const Slots& slots, int side, std::optional<Error>& failure)
      : part_(std::move(part)),
        mailbox_(std::move(mailbox)),
        bytes_(connection_bytes(slots)),
        fifo_(ring(slots, side), ring(slots, 1 - side), &failure) {}

  Result<bool> ready() override {
    if (mailbox_ != nullptr && letter_ == nullptr && !post()) return false;  // the mailbox is full for the moment
    const uint32_t answer = header().answer.load(std::memory_order_acquire);
    if (answer == refused || unread()) return Error{Code::remote, "shm: the peer cannot open our memory"};
    return answer == accepted;
  }
  std::string_view hello() const override {
    return {header().hello, std::min<size_t>(header().hello_bytes, sizeof(ConnectionHeader::hello))};
  }
  Fifo& fifo() override { return fifo_; }
  ConnectionHeader& header() const { return *reinterpret_cast<ConnectionHeader*>(part_.data()); }

 private:
  SlotRing ring(const Slots& slots, int side) const {
    return {part_.data() + connection_header_bytes + static_cast<size_t>(side) * SlotRing::footprint(slots), slots};
  }
  bool post() {
    auto* entries = reinterpret_cast<MailboxEntry*>(mailbox_->data());
    for (size_t i = 0; i < mailbox_entries; ++i) {
      uint32_t expected = free_letter;
      if (!entries[i].state.compare_exchange_strong(expected, writing, std::memory_order_acquire)) continue;
      part_.memory->address().copy(entries[i].address, sizeof entries[i].address - 1);
      entries[i].offset = part_.offset;
      entries[i].bytes = bytes_;
      entries[i].state.store(posted, std::memory_order_release);
      letter_ = &entries[i];
      return true;
    }
    return false;
  }
  // The entry may hold somebody else's letter by now.
  bool unread() {
    if (letter_ == nullptr || letter_->state.load(std::memory_order_acquire) != unreadable) return false;
    if (part_.memory->address() != letter_->address || part_.offset != letter_->offset) return false;
    letter_->state.store(free_letter, std::memory_order_release);
    letter_ = nullptr;
    return true;
  }

  Part part_;
  std::unique_ptr<SharedMemory> mailbox_;
  MailboxEntry* letter_ = nullptr;  // ours in it, once posted
  size_t bytes_;
  SlotFifo fifo_;
};

class ShmListener final : public Listener {
 public:
  ShmListener(std::unique_ptr<SharedMemory> mailbox, const Slots& slots, std::optional<Error>& failure)
      : mailbox_(std::move(mailbox)), slots_(slots), failure_(failure) {}
  std::string address() const override { return mailbox_->address(); }
  Result<std::unique_ptr<Endpoint>> accept() override {
    auto* entries = reinterpret_cast<MailboxEntry*>(mailbox_->data());
    for (size_t i = 0; i < mailbox_entries; ++i) {
      if (entries[i].state.load(std::memory_order_acquire) != posted) continue;
      const std::string address(entries[i].address, strnlen(entries[i].address, sizeof entries[i].address));
      auto endpoint = open(address, entries[i].offset, entries[i].bytes);
      if (endpoint) std::memset(entries[i].address, 0, sizeof entries[i].address);
      entries[i].state.store(endpoint ? free_letter : unreadable, std::memory_order_release);
      return endpoint;
    }
    return std::unique_ptr<Endpoint>();
  }

 private:
  Result<std::unique_ptr<Endpoint>> open(const std::string& address, size_t offset, size_t bytes) {
    std::shared_ptr<SharedMemory> memory = GYRE_TRY(SharedMemory::open_part(address, offset, bytes));
    if (memory->bytes() < connection_header_bytes) return Error{Code::remote, "shm: a letter names memory that is no connection's"};
    auto& header = *reinterpret_cast<ConnectionHeader*>(memory->data());
    if (memory->bytes() != connection_bytes(slots_) || header.credits != slots_.credits || header.slot_bytes != slots_.bytes) {
      header.answer.store(refused, std::memory_order_release);
      return Error{Code::invalid_usage, fmt::format("shm: the peer has {} slots of {} bytes, this rank {} of {}", header.credits,
                                                    header.slot_bytes, slots_.credits, slots_.bytes)};
    }
    auto endpoint = std::make_unique<ShmEndpoint>(Part{std::move(memory)}, nullptr, slots_, 1, failure_);
    endpoint->header().answer.store(accepted, std::memory_order_release);
    return std::unique_ptr<Endpoint>(std::move(endpoint));
  }

  std::unique_ptr<SharedMemory> mailbox_;
  Slots slots_;
  std::optional<Error>& failure_;
};

class ShmWorker final : public Worker {
 public:
  explicit ShmWorker(const Slots& slots) : slots_(slots) {}
  Result<std::unique_ptr<Listener>> listen() override {
    auto mailbox = GYRE_TRY(SharedMemory::create(mailbox_entries * sizeof(MailboxEntry)));
    return std::unique_ptr<Listener>(std::make_unique<ShmListener>(std::move(mailbox), slots_, failure_));
  }
  Result<std::unique_ptr<Endpoint>> connect(std::string_view address, std::string_view hello) override {
    if (hello.size() > sizeof(ConnectionHeader::hello)) return Error{Code::invalid_argument, "shm: a hello has at most 64 bytes"};
    auto mailbox = GYRE_TRY(SharedMemory::open(address));
    if (mailbox->bytes() != mailbox_entries * sizeof(MailboxEntry)) return Error{Code::remote, "shm: the address is no listener's"};
    auto endpoint = std::make_unique<ShmEndpoint>(GYRE_TRY(part()), std::move(mailbox), slots_, 0, failure_);
    ConnectionHeader& header = endpoint->header();
    header.credits = slots_.credits;
    header.slot_bytes = slots_.bytes;
    header.hello_bytes = static_cast<uint32_t>(hello.size());
    hello.copy(header.hello, hello.size());
    return std::unique_ptr<Endpoint>(std::move(endpoint));
  }
  void will_connect(size_t times) override { to_come_ = times; }
  Result<std::unique_ptr<Memory>> register_memory(std::span<std::byte>, MemoryKind) override { return std::make_unique<Memory>(); }
  unsigned progress() override { return 0; }
  const Error* failure() const override { return failure_ ? &*failure_ : nullptr; }

 private:
  // Room for the next connection, and for those that are to come after it.
  Result<Part> part() {
    const size_t bytes = connection_bytes(slots_);
    if (next_.memory == nullptr) next_ = {GYRE_TRY(SharedMemory::create(std::max<size_t>(to_come_, 1) * bytes)), 0};
    Part mine = next_;
    next_.offset += bytes;
    if (next_.offset == next_.memory->bytes()) next_ = {};
    to_come_ -= std::min<size_t>(to_come_, 1);
    return mine;
  }

  Slots slots_;
  std::optional<Error> failure_;
  size_t to_come_ = 0;
  Part next_;  // what is left of the memory that was made last
};

}  // namespace

size_t shm_connection_bytes(const Slots& slots) { return connection_bytes(slots); }

size_t shm_worker_bytes() { return SharedMemory::footprint(mailbox_entries * sizeof(MailboxEntry)) + SharedMemory::footprint(0); }

Result<std::unique_ptr<Worker>> open_shm_worker(Slots slots) { return std::unique_ptr<Worker>(std::make_unique<ShmWorker>(slots)); }

}  // namespace gyre::transport
