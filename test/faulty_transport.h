// Any transport, with the faults that a test asks for: connections refused or never ready, sends and receives that return null, fail,
// complete late or never, memory that can't be registered, a worker that stopped. Without a fault it passes everything on. A test
// changes Faults between two calls; what is counted in it may be read at any time.
#pragma once
#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>

#include "transport/transport.h"

namespace gyre::test {

struct Failure {
  const char* text = "the test wants it to fail";
  Code code = Code::remote;
};

struct Faults {
  std::optional<Error> listen, connect, accept, ready, registration;  ///< what these end with
  bool never_ready = false, stopped = false;
  uint32_t nulls = 0;                      ///< so many sends and receives return null
  std::optional<Failure> sends, receives;  ///< what those posted from now on end with
  bool never_complete = false;             ///< those posted from now on
  uint32_t late = 0;                       ///< progress() calls from done to shown as done
  bool lazy = false;                       ///< a send leaves with the next progress(), as a long one does that asks its receiver first
  bool eager = false;  ///< a send is done at once, as a small one is on most networks; only a synchronous one waits for its receive

  std::atomic<uint32_t> connects = 0, posted = 0, under_way = 0;
  std::atomic<uint32_t> endpoints = 0, registered = 0;  ///< alive
  bool quiet = false;                                   ///< the peer does not hear of a connection that was broken off
  const char* broken_off = nullptr;                     ///< the last reason given
};

struct FaultyRequest : transport::Request {
  transport::Request* inner = nullptr;
  std::vector<std::byte> copy;                        // of an eager send
  std::optional<std::span<const std::byte>> waiting;  // of a lazy send, until it has left
  uint64_t tag = 0;
  std::optional<Failure> fault;
  bool held = false;  // the caller has it
  bool never = false, at_once = false;
  uint32_t late = 0;
};

class FaultyEndpoint final : public transport::Endpoint {
 public:
  FaultyEndpoint(std::unique_ptr<transport::Endpoint> inner, Faults& faults, std::vector<FaultyEndpoint*>& all)
      : inner_(std::move(inner)), faults_(faults), all_(all) {
    all_.push_back(this);
    ++faults_.endpoints;
  }
  ~FaultyEndpoint() override {
    std::erase(all_, this);
    --faults_.endpoints;
  }

  Result<bool> ready() override {
    if (faults_.ready) return *faults_.ready;
    if (faults_.never_ready || !inner_) return false;
    return inner_->ready();
  }
  std::string_view hello() const override { return inner_ ? inner_->hello() : ""; }
  transport::Fifo& fifo() override { return inner_->fifo(); }
  transport::Request* send(uint64_t tag, std::span<const std::byte> data, const transport::Memory* memory) override {
    if (!may_post()) return nullptr;
    FaultyRequest& request = take(faults_.sends);
    if (faults_.eager) {
      request.copy.assign(data.begin(), data.end());
      request.at_once = true;
      data = request.copy;
    }
    if (faults_.lazy && inner_) {
      request.waiting = data;
      request.tag = tag;
      return hold(request);
    }
    return start(request, inner_ ? inner_->send(tag, data, memory) : nullptr);
  }
  transport::Request* send_synchronous(uint64_t tag, std::span<const std::byte> data, const transport::Memory* memory) override {
    if (!may_post()) return nullptr;
    return start(take(faults_.sends), inner_ ? inner_->send_synchronous(tag, data, memory) : nullptr);
  }
  transport::Request* receive(uint64_t tag, std::span<std::byte> data, const transport::Memory* memory) override {
    if (!may_post()) return nullptr;
    return start(take(faults_.receives), inner_ ? inner_->receive(tag, data, memory) : nullptr);
  }
  void release(transport::Request* request) override {
    static_cast<FaultyRequest*>(request)->held = false;
    put_back();
  }
  void start_close() override {
    if (inner_) inner_->start_close();
  }
  bool closed() override {
    const auto gone = [](const FaultyRequest* request) { return !request->inner && !request->waiting; };
    return !inner_ || (std::all_of(under_way_.begin(), under_way_.end(), gone) && inner_->closed());
  }
  void break_off(const char* reason) override {
    faults_.broken_off = broken_ = reason;
    left_ = faults_.quiet ? std::move(inner_) : nullptr;
    inner_.reset();
    for (FaultyRequest* request : under_way_) {
      request->inner = nullptr;
      request->waiting.reset();
      end(*request, Failure{reason, Code::remote});
    }
    put_back();
  }
  void progress() {
    for (FaultyRequest* request : under_way_) step(*request);
    put_back();
  }

 private:
  bool may_post() {
    if (faults_.nulls == 0) return true;
    --faults_.nulls;
    return false;
  }
  FaultyRequest& take(const std::optional<Failure>& fault) {
    if (free_.empty()) free_.push_back(&requests_.emplace_back());
    FaultyRequest& request = *free_.back();
    free_.pop_back();
    request = {};
    request.fault = fault;
    request.never = faults_.never_complete;
    request.late = faults_.late;
    return request;
  }
  transport::Request* start(FaultyRequest& request, transport::Request* inner) {
    if (!inner && !broken_) {
      free_.push_back(&request);
      return nullptr;
    }
    request.inner = inner;
    hold(request);
    if (!inner) {
      end(request, Failure{broken_, Code::remote});
    } else if (request.at_once && !request.fault && !request.never) {
      request.bytes = request.copy.size();
      request.done = true;
    }
    return &request;
  }
  transport::Request* hold(FaultyRequest& request) {
    request.held = true;
    under_way_.push_back(&request);
    ++faults_.posted;
    ++faults_.under_way;
    return &request;
  }
  void step(FaultyRequest& request) {
    if (request.waiting) {
      request.inner = inner_->send(request.tag, *request.waiting, nullptr);
      if (request.inner) request.waiting.reset();
    }
    if (!request.inner || !request.inner->done || request.never) return;
    if (request.late > 0) {
      --request.late;
      return;
    }
    const bool was_done = request.done;
    request.bytes = request.inner->bytes;
    const char* failure = request.inner->failure;
    const Code code = request.inner->code;
    inner_->release(std::exchange(request.inner, nullptr));
    if (was_done) return;
    if (request.fault)
      end(request, *request.fault);
    else if (failure)
      end(request, Failure{failure, code});
    else
      request.done = true;
  }
  static void end(FaultyRequest& request, Failure failure) {
    if (request.done) return;
    request.failure = failure.text;
    request.code = failure.code;
    request.done = true;
  }
  // Those that neither the caller nor the transport has any more.
  void put_back() {
    std::erase_if(under_way_, [&](FaultyRequest* request) {
      if (request->held || request->inner || request->waiting) return false;
      free_.push_back(request);
      --faults_.under_way;
      return true;
    });
  }

  std::deque<FaultyRequest> requests_;  // outlive the endpoint that reads their copies
  std::unique_ptr<transport::Endpoint> inner_, left_;
  Faults& faults_;
  std::vector<FaultyEndpoint*>& all_;
  const char* broken_ = nullptr;
  std::vector<FaultyRequest*> free_, under_way_;
};

class FaultyListener final : public transport::Listener {
 public:
  FaultyListener(std::unique_ptr<transport::Listener> inner, Faults& faults, std::vector<FaultyEndpoint*>& all)
      : inner_(std::move(inner)), faults_(faults), all_(all) {}
  std::string address() const override { return inner_->address(); }
  Result<std::unique_ptr<transport::Endpoint>> accept() override {
    if (faults_.accept) return *faults_.accept;
    auto endpoint = GYRE_TRY(inner_->accept());
    if (!endpoint) return std::unique_ptr<transport::Endpoint>();
    return std::unique_ptr<transport::Endpoint>(std::make_unique<FaultyEndpoint>(std::move(endpoint), faults_, all_));
  }

 private:
  std::unique_ptr<transport::Listener> inner_;
  Faults& faults_;
  std::vector<FaultyEndpoint*>& all_;
};

class FaultyMemory final : public transport::Memory {
 public:
  FaultyMemory(std::unique_ptr<transport::Memory> inner, Faults& faults) : inner_(std::move(inner)), faults_(faults) {
    ++faults_.registered;
  }
  ~FaultyMemory() override { --faults_.registered; }

 private:
  std::unique_ptr<transport::Memory> inner_;
  Faults& faults_;
};

class FaultyWorker final : public transport::Worker {
 public:
  /// `faults` outlives it, and what is made of it.
  FaultyWorker(std::unique_ptr<transport::Worker> inner, Faults& faults) : inner_(std::move(inner)), faults_(faults) {}
  Result<std::unique_ptr<transport::Listener>> listen() override {
    if (faults_.listen) return *faults_.listen;
    return std::unique_ptr<transport::Listener>(std::make_unique<FaultyListener>(GYRE_TRY(inner_->listen()), faults_, endpoints_));
  }
  Result<std::unique_ptr<transport::Endpoint>> connect(std::string_view address, std::string_view hello) override {
    ++faults_.connects;
    if (faults_.connect) return *faults_.connect;
    auto endpoint = GYRE_TRY(inner_->connect(address, hello));
    return std::unique_ptr<transport::Endpoint>(std::make_unique<FaultyEndpoint>(std::move(endpoint), faults_, endpoints_));
  }
  Result<std::unique_ptr<transport::Memory>> register_memory(std::span<std::byte> region, transport::MemoryKind kind) override {
    if (faults_.registration) return *faults_.registration;
    return std::unique_ptr<transport::Memory>(std::make_unique<FaultyMemory>(GYRE_TRY(inner_->register_memory(region, kind)), faults_));
  }
  unsigned progress() override {
    const unsigned count = inner_->progress();
    for (FaultyEndpoint* endpoint : endpoints_) endpoint->progress();
    return count;
  }
  void abandon() override { inner_->abandon(); }
  bool stopped() const override { return faults_.stopped || inner_->stopped(); }
  const Error* failure() const override { return inner_->failure(); }

 private:
  std::unique_ptr<transport::Worker> inner_;
  Faults& faults_;
  std::vector<FaultyEndpoint*> endpoints_;
};

}  // namespace gyre::test
