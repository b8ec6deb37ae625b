#include "test/transport/fake_verbs.h"

#include <endian.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <vector>

namespace gyre::test {
namespace fake_verbs {

using transport::verbs::Api;

constexpr int most_tries = 200;  // polls that a packet waits for a cut path, times its queue pair's retries

struct Device : ibv_device {
  struct Port {
    bool up = true, passes = true, acknowledges = true;
  };
  FakeTraits traits;
  std::vector<Port> ports;
  bool alive = true;
  uint64_t sent = 0;  // bytes
};

struct OpenDevice : ibv_context {
  Device* of = nullptr;
  std::deque<ibv_async_event> events;
};

struct Queue : ibv_cq {
  std::deque<ibv_wc> completions;
  bool overrun = false;
};

struct Send {
  uint64_t id = 0;
  bool signaled = false, executed = false;
  ibv_wc_opcode opcode{};
  uint32_t bytes = 0;
};

struct Pair : ibv_qp {
  ibv_qp_init_attr made{};
  ibv_qp_attr attributes{};
  std::deque<Send> sends;
  std::deque<ibv_recv_wr> receives;
  uint64_t sent = 0;      // of all time
  uint64_t received = 0;  // of the peer's: what comes out of turn is dropped
};

struct Packet {
  uint32_t from = 0, to = 0;
  uint64_t number = 0;  // of its sender's sends
  ibv_wr_opcode opcode{};
  std::vector<std::byte> data;
  ibv_sge back{};  // of a read: where to
  uint64_t address = 0;
  uint32_t key = 0, immediate = 0;
  int tries = 0;
  bool failed = false;  // for its sender; it is still on its way
};

enum class Fate { waits, gone };

/// As a device writes what a processor may poll: word by word, each at once, the last one last.
void write_memory(std::byte* to, const std::vector<std::byte>& data) {
  constexpr size_t word = sizeof(uint64_t), polled = 64;
  if (data.size() != polled || reinterpret_cast<uintptr_t>(to) % word != 0) {
    std::memcpy(to, data.data(), data.size());
    return;
  }
  for (size_t at = 0; at < data.size(); at += word) {
    uint64_t value = 0;
    std::memcpy(&value, data.data() + at, word);
    std::atomic_ref(*reinterpret_cast<uint64_t*>(to + at)).store(value, std::memory_order_release);
  }
}

}  // namespace fake_verbs
using namespace fake_verbs;

struct FakeVerbs::State {
  bool keeps_completions = false;
  mutable std::mutex mutex;
  Api api;
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<OpenDevice*> open;
  std::map<uint32_t, Pair*> pairs;
  std::map<uint32_t, ibv_mr*> regions;
  std::map<uint32_t, int> access;
  std::map<uint32_t, std::pair<int, uint64_t>> dmabufs;  // descriptor and offset
  std::vector<std::pair<std::span<const std::byte>, bool>> gpus;
  std::deque<Packet> network;
  std::map<std::string, std::pair<int, int>> failures;  // function: calls until then, errno
  bool held = false;
  std::mt19937_64 random;
  bool shuffled = false;
  int handles = 0;
  uint32_t next = 100;
  FakeCounts counts;

  Device& device(const std::string& name) {
    return **std::find_if(devices.begin(), devices.end(), [&](const auto& d) { return name == d->name; });
  }
  Device::Port& port(const std::string& name, uint8_t number) { return device(name).ports[number - 1U]; }
  Device::Port& port(const Pair& pair) { return static_cast<OpenDevice*>(pair.context)->of->ports[pair.attributes.port_num - 1U]; }

  bool fails(const char* function) {
    const auto found = failures.find(function);
    if (found == failures.end() || --found->second.first > 0) return false;
    errno = found->second.second;
    failures.erase(found);
    return true;
  }

  /// By its address, this memory of a GPU is none.
  bool is_foreign(const void* data) const {
    for (const auto& [memory, peer] : gpus) {
      if (peer || data < memory.data() || data >= memory.data() + memory.size()) continue;
      errno = EFAULT;
      return true;
    }
    return false;
  }

  void tell(const Device& device, ibv_event_type type, uint8_t port) {
    for (OpenDevice* context : open) {
      if (context->of != &device) continue;
      ibv_async_event event{};
      event.event_type = type;
      event.element.port_num = port;
      context->events.push_back(event);
      const uint64_t one = 1;
      (void)!::write(context->async_fd, &one, sizeof one);
    }
  }

  void complete(ibv_cq* queue, const ibv_wc& completion) {
    auto& to = *static_cast<Queue*>(queue);
    if (to.completions.size() >= static_cast<size_t>(to.cqe)) to.overrun = true;
    if (!to.overrun) to.completions.push_back(completion);
  }

  ibv_wc completion(const Pair& pair, uint64_t id, ibv_wc_status status) const {
    ibv_wc wc{};
    wc.wr_id = id;
    wc.status = status;
    wc.qp_num = pair.qp_num;
    wc.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x80 + static_cast<uint32_t>(status);
    return wc;
  }

  void break_pair(Pair& pair, ibv_wc_status first = IBV_WC_WR_FLUSH_ERR) {
    if (pair.state == IBV_QPS_ERR) return;
    pair.state = IBV_QPS_ERR;
    for (const Send& send : pair.sends) complete(pair.send_cq, completion(pair, send.id, std::exchange(first, IBV_WC_WR_FLUSH_ERR)));
    for (const auto& receive : pair.receives) complete(pair.recv_cq, completion(pair, receive.wr_id, IBV_WC_WR_FLUSH_ERR));
    for (Packet& packet : network) packet.failed = packet.failed || packet.from == pair.qp_num;
    pair.sends.clear();
    pair.receives.clear();
  }

  void acknowledge(const Packet& packet) {
    const auto found = pairs.find(packet.from);
    if (found == pairs.end() || packet.failed || found->second->state == IBV_QPS_ERR) return;  // it was refused just now
    Pair& pair = *found->second;
    // Completions are in order: a send that is executed out of turn can't be, since its queue pair's packets are in order.
    Send& send = pair.sends.front();
    if (send.signaled) {
      auto wc = completion(pair, send.id, IBV_WC_SUCCESS);
      wc.opcode = send.opcode;
      wc.byte_len = send.bytes;
      complete(pair.send_cq, wc);
    }
    pair.sends.pop_front();
  }

  void refuse(const Packet& packet, ibv_wc_status status) {
    const auto found = pairs.find(packet.from);
    if (found != pairs.end() && !packet.failed) break_pair(*found->second, status);
  }

  std::byte* memory(const Packet& packet, const Pair& to, int needed) {
    const auto found = regions.find(packet.key);
    if (found == regions.end() || found->second->pd != to.pd || (access[packet.key] & needed) != needed) return nullptr;
    const auto begin = reinterpret_cast<uint64_t>(found->second->addr);
    const uint64_t bytes = packet.opcode == IBV_WR_RDMA_READ ? packet.back.length : packet.data.size();
    if (packet.address < begin || packet.address + bytes > begin + found->second->length) return nullptr;
    return reinterpret_cast<std::byte*>(packet.address);
  }

  /// At the peer. Waits: it has no receive.
  Fate arrive(Packet& packet, Pair& to) {
    const bool takes_receive =
        packet.opcode == IBV_WR_RDMA_WRITE_WITH_IMM || packet.opcode == IBV_WR_SEND || packet.opcode == IBV_WR_SEND_WITH_IMM;
    if (takes_receive && to.receives.empty()) return Fate::waits;
    const bool to_receive = packet.opcode == IBV_WR_SEND || packet.opcode == IBV_WR_SEND_WITH_IMM;
    std::byte* place = nullptr;
    if (to_receive && !packet.data.empty()) {
      const ibv_sge& into = *to.receives.front().sg_list;
      place = into.length >= packet.data.size() ? reinterpret_cast<std::byte*>(into.addr) : nullptr;
    } else if (!to_receive && (!packet.data.empty() || packet.opcode == IBV_WR_RDMA_READ)) {
      place = memory(packet, to, packet.opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE);
    }
    if (!place && (!packet.data.empty() || packet.opcode == IBV_WR_RDMA_READ)) {
      refuse(packet, IBV_WC_REM_ACCESS_ERR);
      break_pair(to);
      return Fate::gone;
    }
    if (packet.opcode == IBV_WR_RDMA_READ) {
      if (!packet.failed) std::memcpy(reinterpret_cast<void*>(packet.back.addr), place, packet.back.length);
    } else if (!packet.data.empty()) {
      write_memory(place, packet.data);
    }
    counts.bytes += packet.data.size();
    if (takes_receive) {
      auto wc = completion(to, to.receives.front().wr_id, IBV_WC_SUCCESS);
      wc.opcode = to_receive ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
      wc.byte_len = static_cast<uint32_t>(packet.data.size());
      if (packet.opcode != IBV_WR_SEND) {
        wc.wc_flags = IBV_WC_WITH_IMM;
        wc.imm_data = packet.immediate;
      }
      to.receives.pop_front();
      complete(to.recv_cq, wc);
    }
    return Fate::gone;
  }

  Fate again(Packet& packet, ibv_wc_status otherwise, unsigned retries) {
    if (!packet.failed && ++packet.tries > most_tries * static_cast<int>(retries + 1)) {
      refuse(packet, otherwise);
      packet.failed = true;
    }
    // What its sender has given up may arrive late once, if it has left; a sender that is gone sends nothing again.
    return packet.failed && !held ? Fate::gone : Fate::waits;
  }

  Fate deliver(Packet& packet) {
    const auto from = pairs.find(packet.from), to = pairs.find(packet.to);
    const bool sender = from != pairs.end();
    if (!sender) packet.failed = true;
    if (held) return sender && !packet.failed ? again(packet, IBV_WC_RETRY_EXC_ERR, from->second->attributes.retry_cnt) : Fate::waits;
    const bool passes = sender && port(*from->second).passes;
    const bool takes = to != pairs.end() && port(*to->second).passes &&
                       (to->second->state == IBV_QPS_RTR || to->second->state == IBV_QPS_RTS) &&
                       to->second->attributes.dest_qp_num == packet.from;
    if (packet.failed && (!takes || packet.number != to->second->received)) return Fate::gone;
    if (!packet.failed && (!passes || !takes)) return again(packet, IBV_WC_RETRY_EXC_ERR, from->second->attributes.retry_cnt);
    if (arrive(packet, *to->second) == Fate::waits) {
      if (packet.failed) return Fate::gone;
      const auto retries = from->second->attributes.rnr_retry;
      return retries == 7 ? Fate::waits : again(packet, IBV_WC_RNR_RETRY_EXC_ERR, retries);
    }
    ++to->second->received;
    if (sender && !port(*from->second).acknowledges)
      refuse(packet, IBV_WC_RETRY_EXC_ERR);
    else
      acknowledge(packet);
    return Fate::gone;
  }

  /// Each queue pair's packets in order; whose turn it is may be drawn by lot.
  void pump() {
    std::vector<uint32_t> turns;
    for (const Packet& packet : network)
      if (std::find(turns.begin(), turns.end(), packet.from) == turns.end()) turns.push_back(packet.from);
    if (shuffled) std::shuffle(turns.begin(), turns.end(), random);
    for (const uint32_t from : turns) {
      if (shuffled && random() % 4 == 0) continue;
      const auto packet = std::find_if(network.begin(), network.end(), [&](const Packet& p) { return p.from == from; });
      if (packet == network.end()) continue;
      Packet moving = std::move(*packet);
      const auto at = static_cast<size_t>(packet - network.begin());
      // Out of the list while it moves: what breaks on the way marks all the others.
      if (deliver(moving) == Fate::gone)
        network.erase(network.begin() + static_cast<std::ptrdiff_t>(at));
      else
        network[at] = std::move(moving);
    }
  }
};

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

Api table() {
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

}  // namespace

FakeVerbs::FakeVerbs() : state_(std::make_unique<State>()) {
  std::string folder = std::filesystem::temp_directory_path() / "gyre-fake-verbs-XXXXXX";
  sysfs_ = ::mkdtemp(folder.data());
  state_->api = table();
  state = state_.get();
  transport::verbs::use(&state_->api);
}

FakeVerbs::~FakeVerbs() {
  transport::verbs::use(nullptr);
  state = nullptr;
  std::filesystem::remove_all(sysfs_);
}

void FakeVerbs::add_device(const std::string& name, FakeTraits traits) {
  std::lock_guard lock(state_->mutex);
  auto device = std::make_unique<Device>();
  name.copy(device->name, sizeof device->name - 1);
  device->traits = traits;
  device->ports.resize(static_cast<size_t>(traits.ports));
  for (int port = 1; port <= traits.ports; ++port) {
    const auto shown = std::filesystem::path(sysfs_) / "class/infiniband" / name / "ports" / std::to_string(port);
    std::filesystem::create_directories(shown / "gids");
    std::filesystem::create_directories(shown / "gid_attrs/types");
    const bool infiniband = traits.link_layer == IBV_LINK_LAYER_INFINIBAND;
    std::ofstream(shown / "gids/0") << (infiniband ? "fe80:0000:0000:0000:0002:c903:0000:" : "0000:0000:0000:0000:0000:ffff:0a07:")
                                    << std::hex << 0x100 + state_->devices.size() << '\n';
    std::ofstream(shown / "gid_attrs/types/0") << (infiniband ? "IB/RoCE v1\n" : "RoCE v2\n");
  }
  state_->devices.push_back(std::move(device));
}

void FakeVerbs::cut(const std::string& device, uint8_t port) {
  cut_path(device, port);
  std::lock_guard lock(state_->mutex);
  state_->port(device, port).up = false;
  state_->tell(state_->device(device), IBV_EVENT_PORT_ERR, port);
}

void FakeVerbs::cut_path(const std::string& device, uint8_t port) {
  std::lock_guard lock(state_->mutex);
  state_->port(device, port).passes = false;
}

void FakeVerbs::restore(const std::string& device, uint8_t port) {
  std::lock_guard lock(state_->mutex);
  auto& restored = state_->port(device, port);
  const bool was_down = !restored.up;
  restored = {};
  if (was_down) state_->tell(state_->device(device), IBV_EVENT_PORT_ACTIVE, port);
}

void FakeVerbs::kill(const std::string& name) {
  std::lock_guard lock(state_->mutex);
  Device& device = state_->device(name);
  for (auto& port : device.ports) port.up = port.passes = false;
  for (const auto& [number, pair] : state_->pairs)
    if (static_cast<OpenDevice*>(pair->context)->of == &device) state_->break_pair(*pair);
  state_->tell(device, IBV_EVENT_DEVICE_FATAL, 0);
}

void FakeVerbs::tell(const std::string& device, ibv_event_type type, uint8_t port) {
  std::lock_guard lock(state_->mutex);
  state_->tell(state_->device(device), type, port);
}

void FakeVerbs::tell_of_pair(const std::string& device, ibv_event_type type, uint32_t pair) {
  std::lock_guard lock(state_->mutex);
  state_->tell(state_->device(device), type, 0);
  for (OpenDevice* context : state_->open)
    if (context->of == &state_->device(device)) context->events.back().element.qp = state_->pairs.at(pair);
}

void FakeVerbs::set_gid(const std::string& device, int index, const std::string& gid, const std::string& type, uint8_t port) {
  const auto shown = std::filesystem::path(sysfs_) / "class/infiniband" / device / "ports" / std::to_string(port);
  std::ofstream(shown / "gids" / std::to_string(index)) << gid << '\n';
  std::ofstream(shown / "gid_attrs/types" / std::to_string(index)) << type << '\n';
  tell(device, IBV_EVENT_GID_CHANGE, port);
}

void FakeVerbs::lose_acknowledgements(const std::string& device, uint8_t port) {
  std::lock_guard lock(state_->mutex);
  state_->port(device, port).acknowledges = false;
}

void FakeVerbs::hold(bool held) {
  std::lock_guard lock(state_->mutex);
  state_->held = held;
}

void FakeVerbs::shuffle(uint64_t seed) {
  std::lock_guard lock(state_->mutex);
  state_->shuffled = seed != 0;
  state_->random.seed(seed);
}

void FakeVerbs::fail(const std::string& function, int error, int nth) {
  std::lock_guard lock(state_->mutex);
  state_->failures[function] = {nth, error};
}

void FakeVerbs::add_gpu(std::span<const std::byte> memory, bool peer_memory) {
  std::lock_guard lock(state_->mutex);
  state_->gpus.emplace_back(memory, peer_memory);
  if (!peer_memory) return;
  std::filesystem::create_directories(sysfs_ + "/module/nvidia_peermem");
  std::ofstream(sysfs_ + "/module/nvidia_peermem/version") << "570.86\n";
}

std::vector<FakeVerbs::Region> FakeVerbs::regions() const {
  std::lock_guard lock(state_->mutex);
  std::vector<Region> all;
  for (const auto& [key, region] : state_->regions) {
    const auto buf = state_->dmabufs.find(key);
    const auto [fd, offset] = buf == state_->dmabufs.end() ? std::pair(-1, uint64_t{0}) : buf->second;
    all.push_back({reinterpret_cast<uint64_t>(region->addr), region->length, offset, fd, state_->access.at(key)});
  }
  return all;
}

void FakeVerbs::keep_completions() { state_->keeps_completions = true; }

FakeCounts FakeVerbs::counts() const {
  std::lock_guard lock(state_->mutex);
  return state_->counts;
}

uint64_t FakeVerbs::bytes_of(const std::string& device) const {
  std::lock_guard lock(state_->mutex);
  return state_->device(device).sent;
}

int FakeVerbs::open_handles() const {
  std::lock_guard lock(state_->mutex);
  return state_->handles;
}

}  // namespace gyre::test
