// What the engine and the plugins need of a way to move bytes, and no more. A Device can open Workers; a Worker owns everything made
// from it and is used by one thread; two Workers are joined by an Endpoint pair (listen, connect, accept). Backends: loopback (in
// process, the reference), shm, verbs, ucx, tcp. Nothing here blocks, sleeps or allocates after an Endpoint is ready; what can't be done
// now returns null or false and is tried again after Worker::progress().
//
// An Endpoint moves messages in one of two ways:
//   buffered: fifo() copies nothing itself; the sender writes into a slot of the connection, the receiver reads from that slot;
//   posted:   send() and receive() move user memory; posted_fifo.h makes a Fifo of them.
// It must not know: ranks, schedules, reductions.
#pragma once
#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/result.h"

namespace gyre::transport {

class Memory;
class Ringer;

/// Geometry of a connection, per direction. Equal on both ends.
struct Slots {
  uint32_t credits = 8;      ///< messages that may be under way
  size_t bytes = 64 * 1024;  ///< largest message
};

/// A message that has arrived and was not popped yet; data is null when there is none.
struct Arrival {
  const std::byte* data = nullptr;
  size_t bytes = 0;
  uint64_t plan = 0;  ///< what the sender passed to commit() or send_from()
  bool lent = false;  ///< it lies in the sender's memory: once its data has been read, front() must still show it
};

/// Messages of one connection, first in first out in each direction, at most `credits` under way. `plan` is a word that travels with a
/// message and arrives with it (the engine's hash of the schedule that is being run).
class Fifo {
 public:
  Fifo() = default;
  Fifo(const Fifo&) = delete;
  Fifo& operator=(const Fifo&) = delete;
  virtual ~Fifo() = default;

  /// True where every message is announced (expect(), at the end) before front() can show it, and may be under way after commit(), which
  /// sent() and completed() tell.
  virtual bool posted() const { return direct(); }
  /// True where messages can also go from and to user memory.
  virtual bool direct() const { return false; }
  /// True where they can also be read by the peer where they lie, if that is this process's shared heap (shared_heap.h).
  virtual bool lends() const { return false; }

  /// Where to write the next outgoing message of `bytes` (at most Slots::bytes); null: no credit. Not sent before commit().
  virtual std::byte* reserve(size_t bytes) = 0;
  /// Sends the reserved message.
  virtual void commit(uint64_t plan, size_t bytes) = 0;
  /// The oldest arrived message. Its data stays valid until pop().
  virtual Arrival front() = 0;
  virtual void pop() = 0;
  /// From now on commit() and pop() wake the peer by this. False: they can't, and a peer that sleeps must look by itself.
  virtual bool rings(const Ringer& /*peer*/) { return false; }

  /// Of a worker that moves GPU memory: from now on messages also go from and to this memory, which is registered with that worker, as
  /// direct ones go from and to any. Both outlive the fifo.
  virtual void admit(std::span<const std::byte> /*region*/, const Memory&) {}
  /// Direct, or of the heap where it is lent: the next outgoing message is `bytes` at `data`, which must not change until completed() has
  /// reached the value that sent() has after this call. False: no credit.
  virtual bool send_from(uint64_t /*plan*/, const std::byte* /*data*/, size_t /*bytes*/) { return false; }
  virtual uint64_t sent() const { return 0; }
  virtual uint64_t completed() { return 0; }
  /// Posted: announces the next message not yet announced, `bytes` long. It is received into `destination`, or into a slot when that
  /// is null, as it must be where this is not direct, but in memory that was admitted. False: too many announced, try again later.
  virtual bool expect(uint64_t /*plan*/, std::byte* /*destination*/, size_t /*bytes*/) { return false; }
};

/// A send or receive under way, of a pool of fixed size; given back by Endpoint::release once done.
struct Request {
  bool done = false;
  size_t bytes = 0;               ///< of a receive: how many came
  const char* failure = nullptr;  ///< static text; null: none
  Code code = Code::remote;       ///< of the failure
  void* handle = nullptr;         ///< the backend's
};

enum class MemoryKind : uint8_t { host, cuda };

/// A part of a GPU's memory as a file: the driver's descriptor, and where in it the part begins. The caller closes it whenever it likes.
struct DmaBuf {
  int fd = -1;
  uint64_t offset = 0;  ///< bytes
};

/// Memory known to a Worker's device; registration ends with it.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  virtual ~Memory() = default;
};

class Endpoint {
 public:
  Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  virtual ~Endpoint() = default;  ///< what is in flight is drained or cancelled

  /// True once both sides are connected; false: not yet; an error: never. Moved on by Worker::progress().
  virtual Result<bool> ready() = 0;
  /// The bytes that the connecting side passed to connect(), on both sides once ready.
  virtual std::string_view hello() const = 0;
  /// The engine's view of this connection; the same object each time.
  virtual Fifo& fifo() = 0;

  /// Posted endpoints: starts moving `data` under `tag` (40 bits). Messages of equal tag arrive in order. Null: try again. `memory`: a
  /// registration of this worker's in which it lies; null where none is needed.
  virtual Request* send(uint64_t /*tag*/, std::span<const std::byte> /*data*/, const Memory* /*memory*/) { return nullptr; }
  /// The same, done only when the peer has begun to receive it: a sender that must not run ahead without bound asks for that.
  virtual Request* send_synchronous(uint64_t tag, std::span<const std::byte> data, const Memory* memory) { return send(tag, data, memory); }
  virtual Request* receive(uint64_t /*tag*/, std::span<std::byte> /*data*/, const Memory* /*memory*/) { return nullptr; }
  /// One of several receives that are waited for together, in a row: `place` of `size`, at most 8. A backend may tell of them at once.
  struct Group {
    uint8_t size = 1, place = 0;
  };
  virtual Request* receive(uint64_t tag, std::span<std::byte> data, const Memory* memory, Group) { return receive(tag, data, memory); }
  virtual void release(Request*) {}
  /// Whether send() has no request before the peer has asked to receive the message.
  virtual bool sends_await_receives() const { return false; }
  /// How many receives can be asked for now, at least.
  virtual size_t receive_room() const { return SIZE_MAX; }
  /// Whether memory that is not registered can be moved; else every send and receive names its registration.
  virtual bool takes_any_memory() const { return true; }

  /// Whether it goes on, and finds a dead peer itself, when the network that TCP takes is cut.
  virtual bool outlives_tcp() const { return false; }

  /// Begins the farewell, so that destruction need not wait for it: nothing is sent or received afterwards. True from closed() on: what
  /// was sent is out, or lost with the connection. Moved on by Worker::progress().
  virtual void start_close() {}
  virtual bool closed() { return true; }
  /// Ends the connection without a farewell: what is under way fails with `reason` (static text), as far as it can be called back.
  virtual void break_off(const char* /*reason*/) {}
  /// After break_off(): user memory is not touched any more. Where something could not be called back in time, the whole worker stops.
  virtual void let_go() {}
  /// Why nothing more will come or go, as static text, or null. What came before can still be received.
  virtual const char* failure() const { return nullptr; }
};

class Listener {
 public:
  Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  virtual ~Listener() = default;

  /// Bytes that another Worker of the same kind can connect to; to be carried there by the caller.
  virtual std::string address() const = 0;
  /// An endpoint for the next peer that has connected (ask ready() of it), or null.
  virtual Result<std::unique_ptr<Endpoint>> accept() = 0;
};

class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  virtual ~Worker() = default;

  virtual Result<std::unique_ptr<Listener>> listen() = 0;
  /// Starts connecting; `hello` (at most 64 bytes) is shown to the accepting side. An error where the address can't be reached at all.
  virtual Result<std::unique_ptr<Endpoint>> connect(std::string_view address, std::string_view hello) = 0;
  /// So many calls of connect() are to come: what they need may be made in one piece.
  virtual void will_connect(size_t /*times*/) {}
  /// From any thread, while another uses the worker.
  virtual Result<std::unique_ptr<Memory>> register_memory(std::span<std::byte> region, MemoryKind = MemoryKind::host) = 0;
  /// The same of GPU memory that comes with a descriptor. Backends that ask the driver themselves do without it.
  virtual Result<std::unique_ptr<Memory>> register_dmabuf(std::span<std::byte> region, const DmaBuf&) {
    return register_memory(region, MemoryKind::cuda);
  }
  /// Whether messages go from and to registered memory of a GPU, without a call into CUDA by whoever moves them. Error: why not.
  virtual Status moves_gpu_memory() const { return Error{Code::invalid_usage, "this transport moves memory of the host only"}; }
  /// Makes what was received so far visible to the GPU whose memory this is; `data` lies in it. Null: it is. Given back by
  /// release_flush() once done.
  virtual Result<Request*> flush(const Memory&, const std::byte* /*data*/) { return nullptr; }
  virtual void release_flush(Request*) {}
  /// Does what is ready and returns how much that was.
  virtual unsigned progress() = 0;
  /// For who is about to sleep in poll(): adds what is to be waited for. Whatever comes from now on makes one of these ready, until
  /// progress() has taken it; what came before must be looked for after this. False: something has come, or may come unheard, so that who
  /// sleeps must look by himself.
  virtual bool arm(std::vector<pollfd>& /*awaited*/) { return false; }
  /// Whether asking for messages is a system call, so that whoever waits beside others should ask less often.
  virtual bool polls_by_kernel() const { return false; }
  /// The job has failed: what is destroyed from now on ends at once, without a farewell to peers that may be gone.
  virtual void abandon() {}
  /// Does nothing any more, see Endpoint::let_go().
  virtual bool stopped() const { return false; }
  /// Why a connection of this worker broke, or null. Once set it stays.
  virtual const Error* failure() const { return nullptr; }
};

/// Where a Worker can be opened: a value, asked once.
struct Device {
  /// Of an RDMA NIC; each as NetDevice's.
  struct Port {
    std::string name;
    int port = 1;
    int mbit_per_s = 0;
  };
  std::string backend;  ///< "loopback", "shm", "verbs", "ucx", "tcp"
  std::string name;
  bool between_hosts = false;
  std::vector<Port> ports{};  ///< of verbs: all that it can use
};

/// All devices of the backends that can be used here, in order of preference; of one backend where one is named, and no other is asked
/// then. UCX, which takes 10 to 100 ms, memory, descriptors and signals to ask, is asked unnamed only where something speaks for it and
/// against plain TCP when it is first thought of: the user's UCX_ variables, RDMA devices that verbs cannot use, or that there is no TCP.
std::vector<Device> devices(std::string_view only = "auto");
/// Why a backend is not among devices(only).
std::string why_not(std::string_view backend, std::string_view only);
/// Opens UCX where a job so configured will or may use it. To be called before a thread is started: when it is loaded, UCX
/// overwrites the beginnings of libc's mmap, munmap and their like, and a thread that runs those at this moment crashes. Who needs UCX
/// hears later why it could not be opened.
void open_ucx_before_threads(const Config&);
/// Of the UCX that this process has opened; empty: none.
std::string ucx_version();
/// What one end of a connection takes of memory for its slots, whatever the transport; where both ends share it, all of it. Not counted is
/// what the kernel and UCX have for themselves.
size_t most_connection_bytes(const Slots&);
/// And what a worker takes besides.
size_t most_worker_bytes();
/// Verbs: by all usable ports of this machine, so that a connection is spread over them, or as far as there are any by these alone,
/// of which the first is where short messages begin.
Result<std::unique_ptr<Worker>> open_worker(const Device&, Slots, const Config& = {}, std::span<const std::string> ports = {});

}  // namespace gyre::transport
