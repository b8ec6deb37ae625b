// What the devices of fake_verbs.h are made of, and how packets move between them.
#pragma once
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

#include "test/transport/fake_verbs.h"

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
inline void write_memory(std::byte* to, const std::vector<std::byte>& data) {
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
  bool held = false, swallows = false;
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

  bool is_of_gpu(uint64_t address) const {
    return std::any_of(gpus.begin(), gpus.end(), [&](const auto& gpu) {
      const auto begin = reinterpret_cast<uint64_t>(gpu.first.data());
      return address >= begin && address < begin + gpu.first.size();
    });
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
    if (swallows && !packet.failed) return Fate::waits;
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

/// The calls of libibverbs upon these devices; null: upon none.
transport::verbs::Api fake_calls(FakeVerbs::State*);

}  // namespace gyre::test
