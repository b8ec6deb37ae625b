#include "test/transport/fake_verbs_state.h"

namespace gyre::test {
namespace {

FakeVerbs::State* state = nullptr;

template <class Made, class Base>
Made* made(Made* handle, Base) {
  ++state->handles;
  return handle;
}

ibv_device** get_device_list(int* count) {
  std::lock_guard lock(state->mutex);
  if (state->fails("get_device_list")) return nullptr;
  auto** list = new ibv_device* [state->devices.size() + 1] {};
  for (size_t i = 0; i < state->devices.size(); ++i) list[i] = state->devices[i].get();
  if (count) *count = static_cast<int>(state->devices.size());
  ++state->handles;
  return list;
}

void free_device_list(ibv_device** list) {
  std::lock_guard lock(state->mutex);
  --state->handles;
  delete[] list;
}

const char* get_device_name(ibv_device* device) { return device->name; }

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  std::lock_guard lock(state->mutex);
  auto& pair = *static_cast<Pair*>(qp);
  for (; wr != nullptr; wr = wr->next) {
    *bad = wr;
    if (state->fails("post_send")) return errno;
    if (pair.state != IBV_QPS_RTS && pair.state != IBV_QPS_ERR) return EINVAL;
    if (pair.sends.size() >= pair.made.cap.max_send_wr) return ENOMEM;
    Packet packet;
    packet.from = pair.qp_num;
    packet.to = pair.attributes.dest_qp_num;
    packet.number = pair.sent++;
    packet.opcode = wr->opcode;
    packet.address = wr->wr.rdma.remote_addr;
    packet.key = wr->wr.rdma.rkey;
    packet.immediate = wr->imm_data;
    uint32_t bytes = 0;
    for (int i = 0; i < wr->num_sge; ++i) {
      const ibv_sge& part = wr->sg_list[i];
      bytes += part.length;
      const auto region = state->regions.find(part.lkey);
      const bool inlined = (wr->send_flags & IBV_SEND_INLINE) != 0;
      const bool known = region != state->regions.end() && region->second->pd == pair.pd &&
                         part.addr >= reinterpret_cast<uint64_t>(region->second->addr) &&
                         part.addr + part.length <= reinterpret_cast<uint64_t>(region->second->addr) + region->second->length;
      if (inlined && state->is_of_gpu(part.addr)) return EFAULT;  // the processor would read it
      if (inlined ? bytes > pair.made.cap.max_inline_data : part.length > 0 && !known) return EINVAL;
      if (wr->opcode == IBV_WR_RDMA_READ) {
        packet.back = part;
      } else {
        const auto* data = reinterpret_cast<const std::byte*>(part.addr);
        packet.data.insert(packet.data.end(), data, data + part.length);
      }
      if (inlined) ++state->counts.inlined;
    }
    ++state->counts.sends;
    static_cast<OpenDevice*>(pair.context)->of->sent += bytes;
    const bool signaled = (wr->send_flags & IBV_SEND_SIGNALED) != 0 || pair.made.sq_sig_all != 0;
    if (signaled) ++state->counts.signaled;
    if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) ++state->counts.immediates;
    if (pair.state == IBV_QPS_ERR) {
      state->complete(pair.send_cq, state->completion(pair, wr->wr_id, IBV_WC_WR_FLUSH_ERR));
      continue;
    }
    pair.sends.push_back({wr->wr_id, signaled, false, wr->opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE, bytes});
    state->network.push_back(std::move(packet));
  }
  return 0;
}

int post_receive(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  std::lock_guard lock(state->mutex);
  auto& pair = *static_cast<Pair*>(qp);
  for (; wr != nullptr; wr = wr->next) {
    *bad = wr;
    if (state->fails("post_recv")) return errno;
    if (pair.state == IBV_QPS_RESET) return EINVAL;
    if (pair.receives.size() >= pair.made.cap.max_recv_wr) return ENOMEM;
    ++state->counts.receives;
    if (pair.state == IBV_QPS_ERR)
      state->complete(pair.recv_cq, state->completion(pair, wr->wr_id, IBV_WC_WR_FLUSH_ERR));
    else
      pair.receives.push_back(*wr);
  }
  return 0;
}

int poll(ibv_cq* cq, int most, ibv_wc* completions) {
  std::lock_guard lock(state->mutex);
  ++state->counts.polls;
  auto& queue = *static_cast<Queue*>(cq);
  state->pump();
  if (queue.overrun) return -1;
  int count = 0;
  for (; count < most && !queue.completions.empty(); ++count) {
    completions[count] = queue.completions.front();
    queue.completions.pop_front();
  }
  state->counts.completions += static_cast<uint64_t>(count);
  return count;
}

ibv_context* open_device(ibv_device* device) {
  std::lock_guard lock(state->mutex);
  if (state->fails("open_device")) return nullptr;
  auto context = std::make_unique<OpenDevice>();
  context->device = device;
  context->of = static_cast<Device*>(device);
  context->ops.poll_cq = poll;
  context->ops.post_send = post_send;
  context->ops.post_recv = post_receive;
  context->async_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
  context->num_comp_vectors = 1;
  state->open.push_back(context.get());
  ++state->handles;
  return context.release();
}

int close_device(ibv_context* context) {
  std::lock_guard lock(state->mutex);
  auto* open = static_cast<OpenDevice*>(context);
  std::erase(state->open, open);
  ::close(open->async_fd);
  --state->handles;
  delete open;
  return 0;
}

int query_device(ibv_context* context, ibv_device_attr* attributes) {
  std::lock_guard lock(state->mutex);
  if (state->fails("query_device")) return errno;
  *attributes = {};
  attributes->max_qp = 1 << 17;
  attributes->max_qp_wr = static_cast<OpenDevice*>(context)->of->traits.max_qp_wr;
  attributes->max_cqe = static_cast<OpenDevice*>(context)->of->traits.max_cqe;
  attributes->max_sge = 30;
  attributes->max_mr_size = UINT64_MAX;
  attributes->phys_port_cnt = static_cast<uint8_t>(static_cast<OpenDevice*>(context)->of->traits.ports);
  return 0;
}

int query_port(ibv_context* context, uint8_t number, _compat_ibv_port_attr* compatible) {
  std::lock_guard lock(state->mutex);
  if (state->fails("query_port")) return errno;
  const Device& device = *static_cast<OpenDevice*>(context)->of;
  auto* attributes = reinterpret_cast<ibv_port_attr*>(compatible);  // of which the compatible one is the beginning
  const auto& port = device.ports[number - 1U];
  attributes->state = port.up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attributes->max_mtu = attributes->active_mtu = IBV_MTU_4096;
  attributes->gid_tbl_len = 4;
  attributes->pkey_tbl_len = static_cast<uint16_t>(device.traits.pkeys.size());
  attributes->phys_state = port.up ? 5 : 2;
  attributes->max_msg_sz = device.traits.max_message;
  attributes->lid = device.traits.link_layer == IBV_LINK_LAYER_INFINIBAND ? device.traits.lid : 0;
  attributes->link_layer = device.traits.link_layer;
  attributes->active_speed = device.traits.speed;
  attributes->active_width = device.traits.width;
  return 0;
}

int query_pkey(ibv_context* context, uint8_t, int index, __be16* key) {
  std::lock_guard lock(state->mutex);
  *key = htobe16(static_cast<OpenDevice*>(context)->of->traits.pkeys.at(static_cast<size_t>(index)));
  return 0;
}

int get_async_event(ibv_context* context, ibv_async_event* event) {
  std::lock_guard lock(state->mutex);
  auto& events = static_cast<OpenDevice*>(context)->events;
  if (events.empty()) {
    errno = EAGAIN;
    return -1;
  }
  uint64_t one = 0;
  (void)!::read(context->async_fd, &one, sizeof one);
  *event = events.front();
  events.pop_front();
  return 0;
}

void ack_async_event(ibv_async_event*) {}

ibv_pd* alloc_pd(ibv_context* context) {
  std::lock_guard lock(state->mutex);
  if (state->fails("alloc_pd")) return nullptr;
  ++state->handles;
  auto* domain = new ibv_pd{};
  domain->context = context;
  return domain;
}

int dealloc_pd(ibv_pd* domain) {
  std::lock_guard lock(state->mutex);
  --state->handles;
  delete domain;
  return 0;
}

ibv_mr* add_region(ibv_pd* domain, void* data, size_t bytes, int access) {
  auto* region = new ibv_mr{};
  region->context = domain->context;
  region->pd = domain;
  region->addr = data;
  region->length = bytes;
  region->lkey = region->rkey = state->next += 7;
  state->regions[region->lkey] = region;
  state->access[region->lkey] = access;
  ++state->handles;
  return region;
}

ibv_mr* reg_mr(ibv_pd* domain, void* data, size_t bytes, int access) {
  std::lock_guard lock(state->mutex);
  return state->fails("reg_mr") || state->is_foreign(data) ? nullptr : add_region(domain, data, bytes, access);
}

ibv_mr* reg_mr_iova2(ibv_pd* domain, void* data, size_t bytes, uint64_t, unsigned access) {
  std::lock_guard lock(state->mutex);
  return state->fails("reg_mr") || state->is_foreign(data) ? nullptr : add_region(domain, data, bytes, static_cast<int>(access));
}

ibv_mr* reg_dmabuf_mr(ibv_pd* domain, uint64_t offset, size_t bytes, uint64_t address, int fd, int access) {
  std::lock_guard lock(state->mutex);
  if (state->fails("reg_dmabuf_mr")) return nullptr;
  if (!static_cast<OpenDevice*>(domain->context)->of->traits.dmabuf)
    errno = EOPNOTSUPP;
  else if (fd < 0)
    errno = EBADF;
  else if ((offset ^ address) % 4096 != 0)
    errno = EINVAL;
  else {
    ibv_mr* region = add_region(domain, reinterpret_cast<void*>(address), bytes, access);
    state->dmabufs[region->lkey] = {fd, offset};
    return region;
  }
  return nullptr;
}

int dereg_mr(ibv_mr* region) {
  std::lock_guard lock(state->mutex);
  state->regions.erase(region->lkey);
  state->dmabufs.erase(region->lkey);
  --state->handles;
  delete region;
  return 0;
}

ibv_cq* create_cq(ibv_context* context, int entries, void* own, ibv_comp_channel*, int) {
  std::lock_guard lock(state->mutex);
  if (state->fails("create_cq")) return nullptr;
  auto* queue = new Queue{};
  queue->context = context;
  queue->cq_context = own;
  queue->cqe = entries;
  ++state->handles;
  return queue;
}

int destroy_cq(ibv_cq* queue) {
  std::lock_guard lock(state->mutex);
  --state->handles;
  delete static_cast<Queue*>(queue);
  return 0;
}

ibv_qp* create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  std::lock_guard lock(state->mutex);
  if (state->fails("create_qp")) return nullptr;
  auto* pair = new Pair{};
  pair->context = domain->context;
  pair->pd = domain;
  pair->send_cq = wanted->send_cq;
  pair->recv_cq = wanted->recv_cq;
  pair->qp_context = wanted->qp_context;
  pair->qp_type = wanted->qp_type;
  pair->qp_num = state->next += 7;
  pair->state = IBV_QPS_RESET;
  const auto most = static_cast<OpenDevice*>(domain->context)->of->traits.max_inline;
  if (wanted->cap.max_inline_data > most) {
    delete pair;
    errno = EINVAL;
    return nullptr;
  }
  pair->made = *wanted;
  state->pairs[pair->qp_num] = pair;
  ++state->handles;
  return pair;
}

int modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  std::lock_guard lock(state->mutex);
  if (state->fails("modify_qp")) return errno;
  auto& pair = *static_cast<Pair*>(qp);
  if ((mask & IBV_QP_STATE) == 0) return EINVAL;
  constexpr int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  constexpr int to_rtr =
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  constexpr int to_rts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  auto& own = pair.attributes;
  switch (attributes->qp_state) {
    case IBV_QPS_INIT:
      if (pair.state != IBV_QPS_RESET || mask != to_init) return EINVAL;
      own.port_num = attributes->port_num;
      break;
    case IBV_QPS_RTR:
      if (pair.state != IBV_QPS_INIT || mask != to_rtr) return EINVAL;
      own.dest_qp_num = attributes->dest_qp_num;
      break;
    case IBV_QPS_RTS:
      if (pair.state != IBV_QPS_RTR || mask != to_rts) return EINVAL;
      own.retry_cnt = attributes->retry_cnt;
      own.rnr_retry = attributes->rnr_retry;
      break;
    case IBV_QPS_ERR:
      state->break_pair(pair);
      return 0;
    case IBV_QPS_RESET:
      pair.sends.clear();
      pair.receives.clear();
      break;
    default:
      return EINVAL;
  }
  pair.state = attributes->qp_state;
  return 0;
}

int query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int, ibv_qp_init_attr* made_as) {
  std::lock_guard lock(state->mutex);
  *attributes = static_cast<Pair*>(qp)->attributes;
  attributes->qp_state = qp->state;
  *made_as = static_cast<Pair*>(qp)->made;
  return 0;
}

int destroy_qp(ibv_qp* qp) {
  std::lock_guard lock(state->mutex);
  auto* pair = static_cast<Pair*>(qp);
  // Completions that were not polled go with it, on most devices; what it has sent does not.
  if (!state->keeps_completions)
    for (auto* queue : {static_cast<Queue*>(pair->send_cq), static_cast<Queue*>(pair->recv_cq)})
      std::erase_if(queue->completions, [&](const ibv_wc& wc) { return wc.qp_num == pair->qp_num; });
  state->pairs.erase(pair->qp_num);
  --state->handles;
  delete pair;
  return 0;
}

}  // namespace

Api fake_calls(FakeVerbs::State* of) {
  state = of;
  Api api;
  api.get_device_list = get_device_list;
  api.free_device_list = free_device_list;
  api.get_device_name = get_device_name;
  api.open_device = open_device;
  api.close_device = close_device;
  api.query_device = query_device;
  api.query_port = query_port;
  api.query_pkey = query_pkey;
  api.get_async_event = get_async_event;
  api.ack_async_event = ack_async_event;
  api.alloc_pd = alloc_pd;
  api.dealloc_pd = dealloc_pd;
  api.reg_mr = reg_mr;
  api.reg_mr_iova2 = reg_mr_iova2;
  api.reg_dmabuf_mr = reg_dmabuf_mr;
  api.dereg_mr = dereg_mr;
  api.create_cq = create_cq;
  api.destroy_cq = destroy_cq;
  api.create_qp = create_qp;
  api.modify_qp = modify_qp;
  api.query_qp = query_qp;
  api.destroy_qp = destroy_qp;
  return api;
}

}  // namespace gyre::test
