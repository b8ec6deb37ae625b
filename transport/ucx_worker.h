// The UCX backend's Worker, Listener and Endpoint. Private to transport/ucx*.cpp.
#pragma once
#include <ucp/api/ucp.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/unique.h"
#include "transport/posted_fifo.h"
#include "transport/ucx.h"
#include "transport/ucx_context.h"
#include "transport/ucx_flush.h"
#include "transport/ucx_message.h"
#include "transport/ucx_process.h"
#include "transport/ucx_requests.h"

namespace gyre::transport::ucx {

class UcxEndpoint;

inline std::string_view text(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

class UcxWorker final : public Worker {
 public:
  static Result<std::unique_ptr<Worker>> open(Slots, const UcxWay&);
  ~UcxWorker() override;

  Result<std::unique_ptr<Listener>> listen() override;
  Result<std::unique_ptr<Endpoint>> connect(std::string_view address, std::string_view hello) override;
  Result<std::unique_ptr<Memory>> register_memory(std::span<std::byte> region, MemoryKind) override;
  Status moves_gpu_memory() const override { return Error{Code::invalid_usage, "UCX may call CUDA to move memory of a GPU"}; }
  Result<Request*> flush(const Memory&, const std::byte* data) override;
  void release_flush(Request*) override;
  unsigned progress() override;
  bool arm(std::vector<pollfd>& awaited) override;
  const Error* failure() const override { return failure_ ? &*failure_ : nullptr; }
  void abandon() override { abandoned_ = true; }
  bool abandoned() const { return abandoned_; }
  bool stopped() const override { return stopped_; }
  void stop() { stopped_ = true; }

  ucp_worker_h get() const { return worker_.get(); }
  Slots slots() const { return slots_; }
  const UcxWay& way() const { return way_; }
  /// A control message of this worker with all but its hello and its own fields.
  Message message(MessageKind, uint32_t id) const;
  Result<uint32_t> new_id();
  void record(const Error& error) {
    if (!failure_) failure_ = error;
  }
  void add(UcxEndpoint* endpoint) { endpoints_.push_back(endpoint); }
  void remove(UcxEndpoint* endpoint) { std::erase(endpoints_, endpoint); }
  /// An endpoint of UCX has failed: called by UCX, from within progress.
  void on_error(ucp_ep_h, ucs_status_t);
  /// An endpoint has something for look_at_break().
  void note_break() { broken_ = true; }
  /// An endpoint to `peer`, and whether UCX will tell when that is lost; its shared memory can't.
  struct Opened {
    ucp_ep_h endpoint;
    bool watched;
  };
  Result<Opened> open_endpoint(const Message& peer, bool watched);
  /// Receives into nothing what has come for this tag and mask, since UCX keeps it else as long as the worker.
  void drop(ucp_tag_t, ucp_tag_t mask);
  /// Keeps what UCX may still touch until the worker is gone.
  struct Kept {
    std::unique_ptr<Requests> requests;
    std::unique_ptr<PostedFifo> fifo{};
    std::vector<std::byte> buffer{};
  };
  void keep(Kept kept) { kept_.push_back(std::move(kept)); }
  /// Reads may be left in UCX: this worker is not destroyed, but stays with all that they may touch.
  void leave_behind() { left_behind_ = true; }
  /// Makes progress until `done()`; false: not within `limit`. For set-down only.
  template <class Done>
  bool drive(std::chrono::milliseconds limit, Done done) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done()) {
      const bool moved = progress() > 0;
      if (stopped_ || std::chrono::steady_clock::now() > end) return false;
      if (!moved) std::this_thread::yield();
    }
    return true;
  }
  /// The same for an operation of UCX that was started without a callback. True: it was done, without an error.
  bool finish(ucs_status_ptr_t operation, std::chrono::milliseconds limit);
  /// The same for what needs the peer's progress. The first silent peer is waited for; then there is little patience left, so that
  /// closing many endpoints takes no longer than closing one.
  void flush(ucs_status_ptr_t operation);

 private:
  UcxWorker(Context context, Slots slots, UcxWay way) : way_(std::move(way)), context_(std::move(context)), slots_(slots) {}
  /// What a worker leaves that can't be destroyed.
  struct Remains {
    Context context;
    std::vector<Kept> kept;
    Unique<ucp_worker, ucp_worker_destroy> worker;
  };
  static std::vector<Remains>& remains();
  Status start();
  void look_at_processes();

  UcxWay way_;
  Context context_;
  std::vector<Kept> kept_;
  std::unique_ptr<Flushes> flushes_;  // where the way has devices that need it
  Unique<ucp_worker, ucp_worker_destroy> worker_;
  Slots slots_;
  std::string name_, address_;
  uint64_t host_ = 0;
  int events_ = -1;        // UCX's descriptor; none where it is not asked to wake
  bool can_watch_ = true;  // UCX tells of lost peers, on every endpoint so far
  uint32_t calls_ = 0;
  std::chrono::steady_clock::time_point looked_{};
  uint32_t next_id_ = 1;
  std::vector<UcxEndpoint*> endpoints_;
  std::chrono::milliseconds patience_{1000};
  bool abandoned_ = false;
  bool stopped_ = false;
  bool left_behind_ = false;
  bool broken_ = false;  // an endpoint has failed and was not looked at
  std::optional<Error> failure_;
};

/// Connecting: says hello and waits for the reply. Accepting: sends the reply. Then both know the other's id and are connected. A side
/// that closes says goodbye, so that the other can tell this from a peer that is lost.
class UcxEndpoint final : public Endpoint {
 public:
  enum class Side : uint8_t { connects, accepts };

  /// `peer`: its listener's address on the connecting side, its hello on the accepting one.
  static Result<std::unique_ptr<Endpoint>> open(UcxWorker&, Side, const Message& peer, std::string_view hello);
  UcxEndpoint(UcxWorker&, uint32_t id, std::string_view hello, std::string peer_name);
  ~UcxEndpoint() override;

  Result<bool> ready() override;
  std::string_view hello() const override { return hello_; }
  Fifo& fifo() override;
  Request* send(uint64_t tag, std::span<const std::byte>, const Memory*) override;
  Request* send_synchronous(uint64_t tag, std::span<const std::byte>, const Memory*) override;
  Request* receive(uint64_t tag, std::span<std::byte>, const Memory*) override;
  void release(Request* request) override { requests_->release(request); }
  void start_close() override;
  bool closed() override;
  void break_off(const char* reason) override;
  void let_go() override;
  const char* failure() const override { return broken_; }

  bool owns(ucp_ep_h endpoint) const { return endpoint == endpoint_; }
  void mark_broken(ucs_status_t);
  /// Outside of UCX's callbacks: acts on a peer that has closed or is lost, once.
  void look_at_break();
  /// Where UCX does not tell: whether the peer's process is gone. Now and then.
  void look_at_process();

 private:
  enum class State : uint8_t { waits_for_reply, sends_reply, connected, failed };

  Status start(Side, const Message& peer);
  void await_goodbye();
  static void on_goodbye(void* ucx_request, ucs_status_t, const ucp_tag_recv_info_t*, void* endpoint);
  Result<bool> fail(Error);
  Status check_slots(Slots peer) const;
  Status take_reply();
  void close();

  UcxWorker& worker_;
  const uint32_t id_;  // messages to this endpoint carry it
  uint32_t peer_id_ = 0;
  std::string hello_, peer_name_;
  State state_ = State::waits_for_reply;
  std::optional<Error> error_;
  const char* broken_ = nullptr;  // UCX's word for it
  bool break_seen_ = false;
  bool peer_left_ = false;  // has said goodbye
  bool watched_ = true;     // by UCX; else by process_
  bool process_gone_ = false;
  ProcessWatch process_;

  std::string outgoing_;  // hello or reply, until sent
  std::array<std::byte, header_bytes> reply_{};
  Request* control_send_ = nullptr;
  Request* control_receive_ = nullptr;
  void* goodbye_ = nullptr;  // UCX's request, while it waits
  bool closing_ = false, broken_off_ = false;
  std::array<void*, 2> farewell_{};  // our goodbye and the flush after it, while UCX has them
  std::unique_ptr<Requests> requests_;
  std::unique_ptr<PostedFifo> fifo_;
  ucp_ep_h endpoint_ = nullptr;
};

class UcxListener final : public Listener {
 public:
  UcxListener(UcxWorker& worker, uint32_t id, std::string address) : worker_(worker), id_(id), address_(std::move(address)) {}
  ~UcxListener() override;
  std::string address() const override { return address_; }
  Result<std::unique_ptr<Endpoint>> accept() override;

 private:
  void take_hello();

  UcxWorker& worker_;
  uint32_t id_;
  std::string address_;
  // The hello that is being received; larger than one part of UCX it may need some progress.
  std::unique_ptr<Requests> requests_ = std::make_unique<Requests>(1);
  std::vector<std::byte> hello_;
  Request* receive_ = nullptr;
};

}  // namespace gyre::transport::ucx
