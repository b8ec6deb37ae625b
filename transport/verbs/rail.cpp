#include "transport/verbs/rail.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace gyre::transport::verbs {
namespace {

constexpr uint8_t retry_for_ever = 7;  // where the receiver has no receive: ours are always posted
constexpr uint8_t rnr_timer = 12;      // 0.64 ms
constexpr int queue_entries = 1 << 14;
constexpr uint32_t packet_numbers = 1U << 24U;

Error failed(const std::string& rail, const char* call, int error) {
  return {Code::system, fmt::format("{}: {}: {}", rail, call, errno_text(error))};
}

Result<Context> open_device(const std::string& name) {
  int count = 0;
  const DeviceList list(api().get_device_list(&count));
  if (!list) return failed(name, "ibv_get_device_list", errno);
  std::string others;
  for (int i = 0; i < count; ++i) {
    ibv_device* device = list.get()[i];
    if (name != api().get_device_name(device)) {
      others += fmt::format("{}{}", others.empty() ? "" : ", ", api().get_device_name(device));
      continue;
    }
    Context context(api().open_device(device));
    if (!context) return failed(name, "ibv_open_device", errno);
    return context;
  }
  return Error{Code::invalid_usage, fmt::format("there is no RDMA device {}; there {}", name, others.empty() ? "is none" : "are " + others)};
}

}  // namespace

Result<std::unique_ptr<Rail>> Rail::open(const std::string& name, uint8_t port, PathOptions options, const std::string& sysfs) {
  GYRE_TRY(load());
  std::unique_ptr<Rail> rail(new Rail(fmt::format("{}:{}", name, port), port, options));
  rail->context_ = GYRE_TRY(open_device(name));
  GYRE_TRY(rail->prepare(name, sysfs));
  return rail;
}

Status Rail::prepare(const std::string& device, const std::string& sysfs) {
  // The oldest form of this call fills the first fields only, in every libibverbs.
  if (const int error = api().query_port(context_.get(), number_, reinterpret_cast<_compat_ibv_port_attr*>(&port_)); error != 0)
    return failed(name_, "ibv_query_port", error);
  if (port_.state != IBV_PORT_ACTIVE) return Error{Code::system, fmt::format("{}: the port is not active", name_)};
  if (port_.link_layer == IBV_LINK_LAYER_ETHERNET) {
    auto gid = choose_gid(read_gids(sysfs, device, number_), GidFilter::from_environment());
    if (!gid) return Error{gid.error().code, fmt::format("{}: {}", name_, gid.error().what)};
    gid_ = *gid;
  }
  domain_.reset(api().alloc_pd(context_.get()));
  if (!domain_) return failed(name_, "ibv_alloc_pd", errno);
  queue_.reset(api().create_cq(context_.get(), queue_entries, nullptr, nullptr, 0));
  if (!queue_) return failed(name_, "ibv_create_cq", errno);
  return {};
}

Result<QueuePair> Rail::make_pair(Limits& limits) const {
  QueuePair pair;
  while (!pair) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = queue_.get();
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap.max_send_wr = limits.sends;
    wanted.cap.max_recv_wr = limits.receives;
    wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
    wanted.cap.max_inline_data = limits.inlined;
    pair.reset(api().create_qp(domain_.get(), &wanted));
    if (!pair && limits.inlined == 0) return failed(name_, "ibv_create_qp", errno);
    if (!pair) limits.inlined /= 2;  // how much is possible, no call tells
  }
  ibv_qp_attr to_init{};
  to_init.qp_state = IBV_QPS_INIT;
  to_init.pkey_index = options_.pkey_index;
  to_init.port_num = number_;
  to_init.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  constexpr int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (const int error = api().modify_qp(pair.get(), &to_init, mask); error != 0) return failed(name_, "ibv_modify_qp to INIT", error);
  return pair;
}

PairCard Rail::card(const ibv_qp& pair) const {
  PairCard card;
  card.gid = gid_.bytes;
  card.number = pair.qp_num;
  card.first_packet = pair.qp_num * 2654435761U % packet_numbers;  // different for a pair that comes after this one
  card.lid = port_.lid;
  card.mtu = static_cast<uint8_t>(port_.active_mtu);
  card.link_layer = port_.link_layer;
  return card;
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
  auto& address = to_rtr.ah_attr;
  address.port_num = number_;
  address.dlid = peer.lid;
  address.sl = options_.service_level;
  address.is_global = port_.link_layer == IBV_LINK_LAYER_ETHERNET ? 1 : 0;
  if (address.is_global != 0) {
    std::memcpy(address.grh.dgid.raw, peer.gid.data(), peer.gid.size());
    address.grh.sgid_index = static_cast<uint8_t>(gid_.index);
    address.grh.hop_limit = 255;
    address.grh.traffic_class = options_.traffic_class;
  }
  constexpr int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
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

Result<MemoryRegion> Rail::add_memory(void* data, size_t bytes) const {
  constexpr int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  MemoryRegion region;
  if (options_.relaxed_ordering && api().reg_mr_iova2)
    region.reset(api().reg_mr_iova2(domain_.get(), data, bytes, reinterpret_cast<uint64_t>(data), access | IBV_ACCESS_RELAXED_ORDERING));
  else
    region.reset(api().reg_mr(domain_.get(), data, bytes, access));
  if (region) return region;
  const int error = errno;
  if (error == ENOMEM)
    return Error{Code::system, fmt::format("{}: {} bytes can't be registered: the limit of locked memory (ulimit -l) may be too low", name_, bytes)};
  return failed(name_, "ibv_reg_mr", error);
}

Status Rail::break_pair(ibv_qp& pair) {
  ibv_qp_attr to_error{};
  to_error.qp_state = IBV_QPS_ERR;
  if (const int error = api().modify_qp(&pair, &to_error, IBV_QP_STATE); error != 0) return failed("a queue pair", "ibv_modify_qp to ERR", error);
  return {};
}

}  // namespace gyre::transport::verbs
