#include "transport/ucx_worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "transport/ucx_api.h"
#include "transport/ucx_library.h"
#include "transport/ucx_log.h"

namespace gyre::transport::ucx {
namespace {

constexpr std::chrono::milliseconds drop_limit{200};
constexpr std::chrono::milliseconds look_interval{500};
constexpr std::chrono::milliseconds impatience{20};
constexpr int last_rounds = 4096;  // of progress, each of which tries some of a dead peer's reads

using Config = Unique<ucp_config_t, ucp_config_release>;

// Contexts are opened and closed by several threads, and share UCX's process-wide tables.
std::mutex& context_mutex() {
  static std::mutex mutex;
  return mutex;
}

// True when the user allows UCX only what works inside a host, none of which can tell of a lost peer. Decided beforehand: asking UCX
// for an endpoint that tells, in vain, leaves a dead endpoint in its tables (1.13) that a peer's message can then meet.
bool only_shared_memory() {
  const char* tls = std::getenv("UCX_TLS");
  if (tls == nullptr || *tls == '\0' || *tls == '^') return false;
  constexpr std::array<std::string_view, 9> local{"posix", "sysv", "mm", "shm", "sm", "cma", "knem", "xpmem", "self"};
  for (std::string_view rest = tls; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (std::find(local.begin(), local.end(), name) == local.end()) return false;
  }
  return true;
}

Error ucx_error(const char* call, ucs_status_t status) { return {Code::system, fmt::format("{}: {}", call, ucs_status_string(status))}; }

Status change(ucp_config_t* config, const char* name, const std::string& value) {
  const auto status = ucp_config_modify(config, name, value.c_str());
  return status == UCS_OK ? Status{} : ucx_error(fmt::format("ucp_config_modify({}={})", name, value).c_str(), status);
}

Result<Config> read_config(const UcxWay& way) {
  ucp_config_t* config = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK) return ucx_error("ucp_config_read", status);
  Config owner(config);
  // Over shared memory only keepalive finds a dead peer, after 20 s by default; the user's own setting wins.
  if (!std::getenv("UCX_KEEPALIVE_INTERVAL")) GYRE_TRY(change(config, "KEEPALIVE_INTERVAL", way.keepalive ? "1s" : "inf"));
  if (!way.devices.empty()) GYRE_TRY(change(config, "NET_DEVICES", way.devices));
  // Without reading in place a rendezvous would have the sender copy when the peer asks, which may be after it was given up.
  if (way.local && !way.reads_processes && !std::getenv("UCX_RNDV_THRESH")) GYRE_TRY(change(config, "RNDV_THRESH", "inf"));
  if (!way.transports.empty()) GYRE_TRY(change(config, "TLS", way.transports));
  if (way.rails > 1) {
    GYRE_TRY(change(config, "MAX_EAGER_RAILS", std::to_string(way.rails)));
    GYRE_TRY(change(config, "MAX_RNDV_RAILS", std::to_string(way.rails)));
  }
  return owner;
}

void handle_error(void* worker, ucp_ep_h endpoint, ucs_status_t status) { static_cast<UcxWorker*>(worker)->on_error(endpoint, status); }

std::string host_and_process() {
  char host[128] = {};
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '?';
  return fmt::format("{}, process {}", host, getpid());
}

class UcxMemory final : public Memory {
 public:
  UcxMemory(Mapped mapped, MemoryKind of) : kind(of), mapped_(std::move(mapped)) {}
  const MemoryKind kind;
  std::unique_ptr<Flushes::Region> flushed;  // of a GPU

 private:
  Mapped mapped_;
};

Result<ucp_context_h> init_context(const UcxWay& way, uint64_t features) {
  const auto config = GYRE_TRY(read_config(way));
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  parameters.features = features;
  parameters.name = "gyre";
  parameters.mt_workers_shared = 1;  // memory is registered by other threads
  ucp_context_h context = nullptr;
  // Not ucp_init(), which asks for the version of the headers: an older UCX would complain, and will do.
  if (const auto status = ucp_init_version(oldest_major, oldest_minor, &parameters, config.get(), &context); status != UCS_OK)
    return ucx_error("ucp_init", status);
  return context;
}

}  // namespace

void close_context(ucp_context_h context) {
  std::lock_guard lock(context_mutex());
  ucp_cleanup(context);
  unroute_log();
}

Result<Context> open_context(const UcxWay& way, uint64_t features) {
  std::lock_guard lock(context_mutex());
  GYRE_TRY(load_ucx());
  renew_environment();
  route_log();
  const auto context = init_context(way, features);
  if (context) return Context(*context);
  unroute_log();
  return context.error();
}

Result<std::unique_ptr<Worker>> UcxWorker::open(Slots slots, const UcxWay& way) {
  auto context = GYRE_TRY(open_context(way, UCP_FEATURE_TAG | (way.wakes ? uint64_t{UCP_FEATURE_WAKEUP} : 0)));
  std::unique_ptr<UcxWorker> worker(new UcxWorker(std::move(context), slots, way));
  GYRE_TRY(worker->start());
  return std::unique_ptr<Worker>(std::move(worker));
}

Status UcxWorker::start() {
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucp_worker_h worker = nullptr;
  if (const auto status = ucp_worker_create(context_.get(), &parameters, &worker); status != UCS_OK)
    return ucx_error("ucp_worker_create", status);
  worker_.reset(worker);

  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  if (const auto status = ucp_worker_get_address(worker, &address, &bytes); status != UCS_OK)
    return ucx_error("ucp_worker_get_address", status);
  address_.resize(bytes);
  std::memcpy(address_.data(), address, bytes);
  ucp_worker_release_address(worker, address);
  if (!way_.flushes.empty()) flushes_ = GYRE_TRY(Flushes::open(way_.flushes));
  if (way_.wakes && ucp_worker_get_efd(worker, &events_) != UCS_OK) events_ = -1;
  name_ = host_and_process();
  host_ = host_id();
  can_watch_ = !way_.local && !only_shared_memory();
  return {};
}

// Reachable for as long as the process lives, so no leak.
std::vector<UcxWorker::Remains>& UcxWorker::remains() {
  static auto& all = *new std::vector<Remains>;
  return all;
}

UcxWorker::~UcxWorker() {
  if (!worker_) return;
  // UCX (1.13) aborts at the end of a worker with reads of another process queued, and through shared memory it can't be told to drop
  // them. A dead process's fail as they are tried, but what one failed read leaves behind it is not seen from here: then the worker stays.
  if (!stopped_) {
    drop(0, 0);
    for (int i = 0; !can_watch_ && i < last_rounds; ++i) progress();
  }
  const bool stays = stopped_ ? way_.local : left_behind_;
  if (!stays) return;
  std::lock_guard lock(context_mutex());
  remains().push_back({std::move(context_), std::move(kept_), std::move(worker_)});
}

Message UcxWorker::message(MessageKind kind, uint32_t id) const {
  return {kind, id, slots_, false, host_, static_cast<uint32_t>(getpid()), name_, {}, address_};
}

void UcxWorker::drop(ucp_tag_t tag, ucp_tag_t mask) {
  ucp_tag_recv_info_t info;
  while (auto* message = ucp_tag_probe_nb(worker_.get(), tag, mask, 1, &info)) {
    ucp_request_param_t parameters{};
    finish(ucp_tag_msg_recv_nbx(worker_.get(), nullptr, 0, message, &parameters), drop_limit);
  }
}

Result<UcxWorker::Opened> UcxWorker::open_endpoint(const Message& peer, bool watched) {
  watched = watched && can_watch_;
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(peer.worker_address.data());
  parameters.err_mode = watched ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
  parameters.err_handler = {handle_error, this};
  ucp_ep_h endpoint = nullptr;
  const auto status = ucp_ep_create(worker_.get(), &parameters, &endpoint);
  if (!watched) can_watch_ = false;
  if (status == UCS_OK) return Opened{endpoint, watched};
  const char* tls = std::getenv("UCX_TLS");
  return Error{Code::system,
               fmt::format("ucp_ep_create to {} (UCX_TLS={}): {}", peer.name, tls != nullptr ? tls : "all", ucs_status_string(status))};
}

Result<uint32_t> UcxWorker::new_id() {
  // Ids are not used again: a late message to a closed connection must not meet a new one.
  if (next_id_ == max_id) return Error{Code::invalid_usage, "a UCX worker can have 4 million connections and listeners in its life"};
  return next_id_++;
}

Result<std::unique_ptr<Listener>> UcxWorker::listen() {
  const auto id = GYRE_TRY(new_id());
  auto address = GYRE_TRY(encode(message(MessageKind::address, id)));
  return std::unique_ptr<Listener>(std::make_unique<UcxListener>(*this, id, std::move(address)));
}

Result<std::unique_ptr<Endpoint>> UcxWorker::connect(std::string_view address, std::string_view hello) {
  const auto peer = GYRE_TRY(decode(MessageKind::address, address));
  return UcxEndpoint::open(*this, UcxEndpoint::Side::connects, peer, hello);
}

Result<Mapped> map_memory(ucp_context_h context, std::span<std::byte> region, MemoryKind kind) {
  ucp_mem_map_params_t parameters{};
  parameters.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  parameters.memory_type = kind == MemoryKind::cuda ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
  parameters.address = region.data();
  parameters.length = region.size();
  ucp_mem_h memory = nullptr;
  if (const auto status = ucp_mem_map(context, &parameters, &memory); status != UCS_OK)
    return Error{Code::system, fmt::format("ucp_mem_map of {} bytes: {}", region.size(), ucs_status_string(status))};
  return Mapped(memory, {context});
}

Result<std::unique_ptr<Memory>> UcxWorker::register_memory(std::span<std::byte> region, MemoryKind kind) {
  if (region.empty()) return std::make_unique<Memory>();
  auto memory = std::make_unique<UcxMemory>(GYRE_TRY(map_memory(context_.get(), region, kind)), kind);
  if (flushes_ && kind == MemoryKind::cuda) memory->flushed = GYRE_TRY(flushes_->add(region, kind));
  return std::unique_ptr<Memory>(std::move(memory));
}

MemoryKind kind_of(const Memory* memory) {
  const auto* known = dynamic_cast<const UcxMemory*>(memory);
  return known != nullptr ? known->kind : MemoryKind::host;
}

Result<Request*> UcxWorker::flush(const Memory& memory, const std::byte* data) {
  const auto* of_gpu = dynamic_cast<const UcxMemory*>(&memory);
  if (!flushes_ || !of_gpu || !of_gpu->flushed) return nullptr;
  return flushes_->start(*of_gpu->flushed, data);
}

void UcxWorker::release_flush(Request* request) { flushes_->release(request); }

unsigned UcxWorker::progress() {
  if (stopped_) [[unlikely]]
    return 0;
  const unsigned count = ucp_worker_progress(worker_.get());
  if (flushes_) flushes_->progress();
  if (broken_) [[unlikely]] {
    broken_ = false;
    for (auto* endpoint : endpoints_) endpoint->look_at_break();
  }
  if (!can_watch_ && ++calls_ % 1024 == 0) [[unlikely]]
    look_at_processes();
  return count;
}

// Who sleeps calls progress() too seldom to get to the processes by counting.
bool UcxWorker::arm(std::vector<pollfd>& awaited) {
  if (events_ < 0 || stopped_ || flushes_) return false;
  if (!can_watch_) look_at_processes();
  if (ucp_worker_arm(worker_.get()) != UCS_OK) return false;
  awaited.push_back({events_, POLLIN, 0});
  return true;
}

void UcxWorker::look_at_processes() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < look_interval) return;
  looked_ = now;
  for (auto* endpoint : endpoints_) endpoint->look_at_process();
}

void UcxWorker::on_error(ucp_ep_h endpoint, ucs_status_t status) {
  for (auto* e : endpoints_) {
    if (e->owns(endpoint)) e->mark_broken(status);
  }
  broken_ = true;
}

void UcxWorker::flush(ucs_status_ptr_t operation) {
  if (abandoned_) {
    if (UCS_PTR_IS_PTR(operation)) ucp_request_free(operation);  // when it is done
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  const bool done = finish(operation, patience_);
  if (!done && std::chrono::steady_clock::now() - start >= patience_) patience_ = impatience;
}

bool UcxWorker::finish(ucs_status_ptr_t operation, std::chrono::milliseconds limit) {
  if (!UCS_PTR_IS_PTR(operation)) return UCS_PTR_STATUS(operation) == UCS_OK;
  auto status = UCS_INPROGRESS;
  drive(limit, [&] {
    status = ucp_request_check_status(operation);
    return status != UCS_INPROGRESS;
  });
  ucp_request_free(operation);  // of one still under way: when it is done
  return status == UCS_OK;
}

}  // namespace gyre::transport::ucx
