#include "transport/verbs/rail.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "base/log.h"
#include "base/text.h"
#include "transport/verbs/checks.h"

namespace gyre::transport::verbs {
namespace {

constexpr uint8_t retry_for_ever = 7;  // where the receiver has no receive: ours are always posted
constexpr uint8_t rnr_timer = 12;      // 0.64 ms
constexpr int queue_entries = 1 << 14;
constexpr uint32_t packet_numbers = 1U << 24U;
constexpr uint8_t needs_global_route = 1;  // a flag of a port of InfiniBand

Error failed(const std::string& rail, const char* call, int error) {
  return {Code::system, fmt::format("{}: {}: {}", rail, call, errno_text(error))};
}

}  // namespace

Result<std::unique_ptr<Rail>> Rail::open(const std::string& name, uint8_t port, PathOptions options, const std::string& sysfs) {
  GYRE_TRY(load());
  std::unique_ptr<Rail> rail(new Rail(name, port, options, sysfs));
  rail->context_ = GYRE_TRY(open_device(name, sysfs));
  GYRE_TRY(rail->prepare());
  return rail;
}

Rail::Rail(std::string device, uint8_t number, PathOptions options, std::string sysfs)
    : device_(std::move(device)),
      name_(fmt::format("{}:{}", device_, number)),
      sysfs_(std::move(sysfs)),
      number_(number),
      options_(options) {}

Status Rail::prepare() {
  static std::once_flag warned;
  std::call_once(warned, [] {
    if (const auto warning = lock_warning(lock_limit()); !warning.empty()) log::warn("{}", warning);
  });
  const int flags = ::fcntl(context_->async_fd, F_GETFL);
  if (flags < 0 || ::fcntl(context_->async_fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return failed(name_, "fcntl of the device's events", errno);
  if (options_.relaxed_ordering_demanded && !api().reg_mr_iova2)
    return Error{Code::invalid_usage,
                 fmt::format("{}: NCCL_IB_PCI_RELAXED_ORDERING=1, but this libibverbs is older than 28 and can't", name_)};
  GYRE_TRY(refresh());
  domain_.reset(api().alloc_pd(context_.get()));
  if (!domain_) return failed(name_, "ibv_alloc_pd", errno);
  if (const int error = api().query_device(context_.get(), &device_limits_); error != 0) return failed(name_, "ibv_query_device", error);
  return {};
}

Result<CompletionQueue> Rail::make_queue(int entries) const {
  entries = std::min(entries, device_limits_.max_cqe);
  CompletionQueue queue(api().create_cq(context_.get(), entries, nullptr, nullptr, 0));
  if (!queue) return Error{Code::system, fmt::format("{}: ibv_create_cq of {} entries: {}", name_, entries, errno_text(errno))};
  return queue;
}

Status Rail::refresh() {
  auto port = Port::read(context_.get(), device_, number_, sysfs_);
  const auto pkey = port ? pkey_index(context_.get(), number_, *port, options_) : Result<uint16_t>(port.error());
  up_ = static_cast<bool>(pkey);
  if (!pkey) return Error{pkey.error().code, fmt::format("{}: {}", name_, pkey.error().what)};
  port_ = *port;
  pkey_index_ = *pkey;
  return {};
}

std::vector<RailEvent> Rail::events() {
  auto events = read_events(context_.get(), number_);
  for (const RailEvent& event : events) {
    using Kind = RailEvent::Kind;
    if (event.kind == Kind::port_down || event.kind == Kind::device_fatal) up_ = false;
    // The error of a port that is down again is no news.
    if (event.kind == Kind::port_up || event.kind == Kind::gid_change || event.kind == Kind::lid_change) (void)refresh();
  }
  return events;
}

std::string Rail::address() const {
  if (!port_.ethernet()) return fmt::format("InfiniBand LID {}", lid());
  return fmt::format("RoCE v{} {}", port_.gid.version, text(port_.gid));
}

std::string Rail::describe() const { return fmt::format("{} ({})", name_, verbs::describe(port_)); }

// A queue that overruns is lost with all its connections, so each has room for whatever its queue pairs can have under way.
Result<size_t> Rail::queue_with(uint32_t room) {
  for (size_t i = 0; i < queues_.size(); ++i)
    if (queues_[i].second >= room) return i;
  auto queue = GYRE_TRY(make_queue(queue_entries));
  const auto entries = static_cast<uint32_t>(queue->cqe);
  if (entries < room)
    return Error{Code::system,
                 fmt::format("{}: the device's completion queues have {} entries, and a connection needs {}", name_, entries, room)};
  polled_.back() = queue.get();
  polled_.push_back(nullptr);
  queues_.emplace_back(std::move(queue), entries);
  return queues_.size() - 1;
}

uint64_t Rail::enter(Path* path, size_t queue, uint32_t room) {
  auto place = std::find_if(paths_.begin(), paths_.end(), [](const Named& named) { return named.room == 0; });
  if (place == paths_.end()) place = paths_.insert(place, {static_cast<uint64_t>(paths_.size()) << 3U, nullptr, 0, 0});
  queues_[queue].second -= room;
  *place = {place->name + (uint64_t{1} << 32U), path, queue, room};
  return place->name;
}

void Rail::forget(uint64_t name) {
  Named& gone = paths_[static_cast<uint32_t>(name) >> 3U];
  queues_[gone.queue].second += std::exchange(gone.room, 0);
  gone.path = nullptr;
}

Result<Rail::Pair> Rail::make_pair(Path* path, Limits& limits) {
  const uint32_t room = limits.sends + limits.receives;
  const size_t queue = GYRE_TRY(queue_with(room));
  auto pair = GYRE_TRY(make_pair_on(queues_[queue].first.get(), limits));
  const uint64_t name = enter(path, queue, room);
  return Pair{std::move(pair), name};
}

Result<QueuePair> Rail::make_pair_on(ibv_cq* queue, Limits& limits) const {
  QueuePair pair;
  const auto most = static_cast<uint32_t>(device_limits_.max_qp_wr);
  limits.sends = std::min(limits.sends, most);
  limits.receives = std::min(limits.receives, most);
  while (!pair) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = queue;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap.max_send_wr = limits.sends;
    wanted.cap.max_recv_wr = limits.receives;
    wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
    wanted.cap.max_inline_data = limits.inlined;
    pair.reset(api().create_qp(domain_.get(), &wanted));
    if (!pair && limits.inlined == 0)
      return Error{Code::system, fmt::format("{}: ibv_create_qp of {} sends and {} receives, on a device of at most {} queue pairs: {}",
                                             name_, limits.sends, limits.receives, device_limits_.max_qp, errno_text(errno))};
    if (!pair) limits.inlined /= 2;  // how much is possible, no call tells
  }
  ibv_qp_attr to_init{};
  to_init.qp_state = IBV_QPS_INIT;
  to_init.pkey_index = pkey_index_;
  to_init.port_num = number_;
  to_init.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  constexpr int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (const int error = api().modify_qp(pair.get(), &to_init, mask); error != 0) return failed(name_, "ibv_modify_qp to INIT", error);
  return pair;
}

PairCard Rail::card(const ibv_qp& pair) const {
  PairCard card;
  card.gid = port_.gid.bytes;
  card.number = pair.qp_num;
  card.first_packet = pair.qp_num * 2654435761U % packet_numbers;  // different for a pair that comes after this one
  card.mbit_per_s = static_cast<uint32_t>(port_.mbit_per_s);
  card.lid = port_.attributes.lid;
  card.mtu = static_cast<uint8_t>(port_.attributes.active_mtu);
  card.link_layer = port_.attributes.link_layer;
  return card;
}

ibv_ah_attr Rail::address_of(const PairCard& peer) const {
  ibv_ah_attr address{};
  address.port_num = number_;
  address.dlid = peer.lid;
  address.sl = options_.service_level;
  const bool elsewhere = !port_.ethernet() && !same_subnet(peer.gid, port_.gid.bytes);
  address.is_global = port_.ethernet() || elsewhere || (port_.attributes.flags & needs_global_route) != 0 ? 1 : 0;
  if (elsewhere && router_lid(peer.gid) != 0) address.dlid = router_lid(peer.gid);
  if (address.is_global != 0) {
    std::memcpy(address.grh.dgid.raw, peer.gid.data(), peer.gid.size());
    address.grh.sgid_index = static_cast<uint8_t>(port_.gid.index);
    address.grh.hop_limit = 255;
    address.grh.traffic_class = options_.traffic_class;
  }
  return address;
}

Status Rail::join(ibv_qp& pair, const PairCard& peer) const {
  const PairCard own = card(pair);
  if (peer.link_layer != own.link_layer)
    return Error{Code::invalid_usage, fmt::format("{}: one end of the connection is InfiniBand, the other Ethernet", name_)};
  ibv_qp_attr to_rtr{};
  to_rtr.qp_state = IBV_QPS_RTR;
  to_rtr.path_mtu = static_cast<ibv_mtu>(std::min(own.mtu, peer.mtu));
  to_rtr.dest_qp_num = peer.number;
  to_rtr.rq_psn = peer.first_packet;
  to_rtr.max_dest_rd_atomic = 1;
  to_rtr.min_rnr_timer = rnr_timer;
  to_rtr.ah_attr = address_of(peer);
  constexpr int rtr =
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (const int error = api().modify_qp(&pair, &to_rtr, rtr); error != 0) return failed(name_, "ibv_modify_qp to RTR", error);

  ibv_qp_attr to_rts{};
  to_rts.qp_state = IBV_QPS_RTS;
  to_rts.sq_psn = own.first_packet;
  to_rts.timeout = options_.timeout;
  to_rts.retry_cnt = options_.retries;
  to_rts.rnr_retry = retry_for_ever;
  to_rts.max_rd_atomic = 1;
  constexpr int rts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  if (const int error = api().modify_qp(&pair, &to_rts, rts); error != 0) return failed(name_, "ibv_modify_qp to RTS", error);
  return {};
}

Status Rail::break_pair(ibv_qp& pair) {
  ibv_qp_attr to_error{};
  to_error.qp_state = IBV_QPS_ERR;
  if (const int error = api().modify_qp(&pair, &to_error, IBV_QP_STATE); error != 0)
    return failed("a queue pair", "ibv_modify_qp to ERR", error);
  return {};
}

}  // namespace gyre::transport::verbs
