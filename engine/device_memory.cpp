#include "engine/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "engine/device_mapped.h"
#include "engine/device_probe.h"
#include "engine/stream_operations.h"
#include "schedule/sends.h"

namespace gyre::engine {
namespace {

constexpr size_t MiB = size_t{1} << 20;
constexpr size_t alignment = 256;  // of a message, as cudaMalloc's

// Of ranks that all reach each other: so long that a kernel takes several times as long as its hand-off, so many that two are under way
// while others are read, and so much memory that 1 GiB goes in fewer operations than a stream takes.
constexpr transport::Slots long_slots{4, 32 * MiB};
constexpr size_t most_region_bytes = 256 * MiB;
// Of others: 1 MiB takes a network of 400 Gb/s twice as long as a kernel its hand-off.
constexpr transport::Slots carried_slots{8, MiB};
constexpr size_t least_message_bytes = 4 << 10;

/// Of a region, whose first bytes they are: so they lie there whatever a rank was told of messages.
constexpr size_t packet_bytes = sizeof(kernels::PacketBuffers);
static_assert(packet_bytes % alignment == 0);

size_t peers(const std::vector<bool>& near) { return static_cast<size_t>(std::count(near.begin(), near.end(), true)) - 1; }
size_t long_region_bytes(size_t peers) { return std::min(most_region_bytes, peers * long_slots.credits * long_slots.bytes); }

// A ring's messages can be of 4 MiB; from 1024 connections on it is more, by which all may send each other something.
size_t carried_room(size_t connections) { return std::max(32 * MiB, connections * carried_slots.credits * least_message_bytes); }

// What a stream has no room for is run by a kernel that stays. That took 3 to 5 times as long in memory of GPUs, and by memory of the host
// no longer than by gates, but kept the program's kernels from its blocks meanwhile (perf/results/2026-11-26-h200).
constexpr double worth_fitting_on_gpus = 3, worth_fitting_by_host = 1.1;

// By NCCL's variable, but not by its default: how far the NIC is from the GPU is not known here, and none of it has run on hardware, so it
// must be allowed at any distance. NCCL's older numbers: 4 and more.
bool networks_may_reach_gpus() {
  const char* const level = std::getenv("NCCL_NET_GDR_LEVEL");
  if (level == nullptr) return false;
  return std::string_view(level) == "SYS" || std::strtol(level, nullptr, 10) >= 4;
}

// As NCCL has it: for machines whose GPUs, or whose IPC, can't be trusted. How far GPUs are from each other is not known here.
bool gpus_are_apart() {
  const char* const disabled = std::getenv("NCCL_P2P_DISABLE");
  if (disabled != nullptr && *disabled != '\0' && *disabled != '0') return true;
  const char* const level = std::getenv("NCCL_P2P_LEVEL");
  const std::string_view most = level != nullptr ? level : "";
  if (most == "LOC" || most == "0") return true;
  if (!most.empty() && most != "SYS" && std::strtol(level, nullptr, 10) < 5)
    log::warn("NCCL_P2P_LEVEL={} is taken for SYS: GPU memory is reached wherever CUDA can; LOC keeps GPUs apart", most);
  return false;
}

/// Another one each time: a region may be an earlier communicator's, with its pattern.
uint64_t new_seed() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

static_assert(packet_bytes >= DeviceProbe::bytes);

Result<kernels::ReachableMemory> region_with_pattern(kernels::Gpu& gpu, DeviceProbe& probe, size_t bytes, uint64_t seed) {
  auto region = GYRE_TRY(gpu.allocate_reachable(packet_bytes + bytes));
  Status written = probe.write(region.memory.get(), seed);
  if (written) return region;
  std::ignore = region.memory.release();  // which may be written to whoever has it next
  return std::move(written).error();
}

/// What a rank offers, where its GPU's memory is reached, and the pattern in it read.
Result<kernels::ReachedMemory> reach_pattern(kernels::Gpu& gpu, DeviceProbe& probe, std::string_view offer) {
  uint64_t seed = 0;
  if (offer.size() < sizeof seed) return Error{Code::cuda, "an offer that is cut off"};
  std::memcpy(&seed, offer.data(), sizeof seed);
  const auto theirs = GYRE_TRY(gpu.reach(offer.substr(sizeof seed)));
  GYRE_TRY(probe.read(theirs.address, seed));
  return theirs;
}

}  // namespace

Result<DeviceMemory> DeviceMemory::open(Communicator& communicator, kernels::Gpu& gpu) {
  DeviceMemory memory;
  memory.rank_ = communicator.rank();
  memory.slots_ = communicator.slots();
  memory.near_ = communicator.connections().near;
  GYRE_TRY(memory.reach(communicator, gpu));
  GYRE_TRY(memory.carry(communicator.connections(), gpu));
  return memory;
}

// What no network takes from the GPU itself goes by pinned memory.
Status DeviceMemory::carry(Connections& connections, kernels::Gpu& gpu) {
  const size_t ranks = near_.size();
  carried_.resize(connections.fifos.size() * ranks);
  if (networks_may_reach_gpus()) {
    for (Backend& backend : connections.backends) land(backend, gpu);
  }
  std::vector<uint32_t> pinned;
  for (const Backend& backend : connections.backends) {
    if (backend.landing != nullptr) continue;
    const auto carried = carried_by(backend);
    pinned.insert(pinned.end(), carried.begin(), carried.end());
  }
  if (pinned.empty()) return {};
  pinned_ = GYRE_TRY(gpu.allocate_pinned(carried_bytes(pinned.size())));
  place(pinned_.get(), pinned, nullptr);
  return {};
}

// Connections whose messages this transport carries, and no kernel.
std::vector<uint32_t> DeviceMemory::carried_by(const Backend& backend) const {
  std::vector<uint32_t> all;
  for (uint32_t c = 0; c < backend.endpoints.size(); ++c) {
    if (backend.endpoints[c] != nullptr && !reaches(static_cast<Rank>(c % near_.size()))) all.push_back(c);
  }
  return all;
}

void DeviceMemory::land(Backend& backend, kernels::Gpu& gpu) {
  const auto connections = carried_by(backend);
  if (connections.empty()) return;
  auto landing = land_on(gpu, backend, connections);
  if (!landing) {
    log::info("rank {}: messages over {} go by memory of the host: {}", rank_, backend.device.name, landing.error().what);
    return;
  }
  log::info("rank {}: messages over {} go from and to memory of the GPU", rank_, backend.device.name);
  backend.landing = *std::move(landing);
}

Result<std::unique_ptr<Landing>> DeviceMemory::land_on(kernels::Gpu& gpu, const Backend& backend,
                                                       const std::vector<uint32_t>& connections) {
  GYRE_TRY(backend.worker->moves_gpu_memory());
  const size_t bytes = carried_bytes(connections.size());
  auto exposed = GYRE_TRY(gpu.allocate_exposed(bytes));
  const Landing::Region region = std::move(exposed.memory);
  auto landing = GYRE_TRY(Landing::open(*backend.worker, region, bytes, exposed.dmabuf.get()));
  for (const uint32_t c : connections) landing->admit(backend.endpoints[c]->fifo());
  place(region.get(), connections, landing.get());
  landed_.push_back(region);
  return landing;
}

size_t DeviceMemory::carried_bytes(size_t connections) const {
  return 2 * (carried_room_ != 0 ? carried_room_ : connections * slots_.credits * slots_.bytes);
}

void DeviceMemory::place(std::byte* at, const std::vector<uint32_t>& connections, Landing* landing) {
  const size_t each = carried_room_ != 0 ? 0 : slots_.credits * slots_.bytes;
  std::byte* out = at + carried_bytes(connections.size()) / 2;
  for (const uint32_t c : connections) carried_[c] = {std::exchange(at, at + each), std::exchange(out, out + each), landing};
}

Status DeviceMemory::reach(Communicator& communicator, kernels::Gpu& gpu) {
  const size_t near = peers(near_), channels = communicator.connections().fifos.size();
  const bool one_host = near + 1 == near_.size();
  const bool longer = GYRE_TRY(all_have(communicator.bootstrap(), communicator.slots_by_default()));
  const size_t carried = carried_room((near_.size() - 1) * channels);
  size_t bytes = near * channels * slots_.credits * slots_.bytes;
  if (longer) bytes = std::max(one_host ? long_region_bytes(near) : 0, carried);
  // A region is kept for good: first a small one, to see whether anybody reaches it.
  std::optional<DeviceProbe> probe;
  if (near != 0 && !gpus_are_apart()) probe = GYRE_TRY(DeviceProbe::open(gpu));
  GYRE_TRY(exchange_regions(communicator, gpu, probe, probe ? 1 : 0, near_));
  std::vector<bool> reached;
  for (const std::byte* const region : regions_) reached.push_back(region != nullptr);
  const bool reached_all = GYRE_TRY(exchange_regions(communicator, gpu, probe, region_ != nullptr ? bytes : 0, reached));
  everywhere_ = one_host && reached_all;
  const bool at_once = GYRE_TRY(all_have(communicator.bootstrap(), !in_turns_));
  const bool few = near_.size() > 1 && near_.size() <= kernels::most_packet_ranks;
  if (everywhere_ && at_once && few && communicator.connections().missing.empty()) take_packets();
  const bool all_wait = GYRE_TRY(all_have(communicator.bootstrap(), gpu.streams_wait()));
  if (in_process_ && on_one_gpu_) board_ = MappedBoard::of(salt_, communicator.size());  // before they meet: one may leave soon after
  const bool reaches_buffers = GYRE_TRY(all_have(communicator.bootstrap(), board_ != nullptr));
  const bool listed = near_.size() > 1 && near_.size() <= kernels::StepList::most;
  if (!everywhere_ || !all_wait || !reaches_buffers || !listed || !communicator.connections().missing.empty()) board_.reset();
  GYRE_TRY(communicator.only_on_gpus(reached_all, {!packets_.empty(), maps()}));
  const auto fits = [maps = maps()](const Plan& plan) { return (maps && mapped_form(plan) != nullptr) || fits_stream(plan); };
  if (all_wait) communicator.prefer_fitting(fits, everywhere_ ? worth_fitting_on_gpus : worth_fitting_by_host);
  if (!longer) return {};
  slots_ = everywhere_ ? long_slots : carried_slots;
  carried_room_ = everywhere_ ? 0 : carried;
  communicator.only_by_messages({slots_, everywhere_ ? long_region_bytes(near) : carried, !everywhere_});
  return {};
}

// Each tells all what opens its region, of so many bytes, and then whose it could open: two that can't both open the other's go by pinned
// memory. `from`: whose are tried. Whether all of a host reach each other's.
Result<bool> DeviceMemory::exchange_regions(Communicator& communicator, kernels::Gpu& gpu, std::optional<DeviceProbe>& probe, size_t bytes,
                                            const std::vector<bool>& from) {
  region_.reset();
  const auto offers = GYRE_TRY(communicator.all_gather(bytes != 0 ? handle_of_region(gpu, *probe, bytes) : ""));
  for (const std::string& offer : offers) salt_ = mix(salt_ ^ fnv1a(offer));
  const auto opened = GYRE_TRY(communicator.all_gather(open_others(gpu, probe, offers, from)));
  const auto own = static_cast<size_t>(std::count(near_.begin(), near_.begin() + rank_, true));  // among those of this host
  for (size_t peer = 0; peer < near_.size(); ++peer) {
    if (near_[peer] && (opened[peer].size() <= own || opened[peer][own] != '1')) regions_[peer] = nullptr;
  }
  if (std::all_of(regions_.begin(), regions_.end(), [](const std::byte* region) { return region == nullptr; })) region_.reset();
  return std::all_of(opened.begin(), opened.end(), [](const std::string& theirs) { return theirs.find('0') == std::string::npos; });
}

void DeviceMemory::take_packets() {
  for (size_t peer = 0; peer < near_.size(); ++peer) {
    std::byte* const region = peer == static_cast<size_t>(rank_) ? region_.get() : regions_[peer] - packet_bytes;
    packets_.push_back(reinterpret_cast<kernels::PacketBuffers*>(region));
  }
}

// Empty: there is none. Begins with the seed of the pattern that is left there.
std::string DeviceMemory::handle_of_region(kernels::Gpu& gpu, DeviceProbe& probe, size_t bytes) {
  const uint64_t seed = new_seed();
  auto region = region_with_pattern(gpu, probe, bytes, seed);
  if (!region) {
    log::warn("rank {}: no GPU memory for others, messages go by the host: {}", rank_, region.error().what);
    return {};
  }
  region_ = std::move(region->memory);
  return std::string(reinterpret_cast<const char*>(&seed), sizeof seed) + region->handle;
}

// For each rank of this host, in their order, 1 where its region is open, and for this rank itself.
std::string DeviceMemory::open_others(kernels::Gpu& gpu, std::optional<DeviceProbe>& probe, const std::vector<std::string>& offers,
                                      const std::vector<bool>& from) {
  regions_.assign(near_.size(), nullptr);
  std::string opened;
  for (size_t peer = 0; peer < near_.size(); ++peer) {
    if (!near_[peer]) continue;
    const bool own = peer == static_cast<size_t>(rank_);
    if (from[peer] && !own && region_ != nullptr && !offers[peer].empty()) {
      const auto theirs = reach_pattern(gpu, *probe, offers[peer]);
      if (theirs) {
        regions_[peer] = theirs->address + packet_bytes;
        in_turns_ = in_turns_ || theirs->in_turns;
        in_process_ = in_process_ && theirs->in_process;
        on_one_gpu_ = on_one_gpu_ && theirs->on_this_gpu;
      } else {
        log::warn("rank {}: GPU memory of rank {} is not reached, messages go by the host: {}", rank_, peer, theirs.error().what);
      }
    }
    opened += own || regions_[peer] != nullptr ? '1' : '0';
  }
  return opened;
}

// Places are counted for each schedule anew, since no schedule has a rank send on all connections, nor often on many.
const DeviceMemory::Places& DeviceMemory::places(const schedule::Schedule& schedule) {
  const auto known = places_.find(&schedule);
  if (known != places_.end()) return known->second;
  Places made{{}, schedule::sends(schedule, rank_, near_).place, {}, {}};
  const size_t ranks = near_.size();
  made.in.assign(made.out.size(), schedule::Sends::none);
  for (size_t peer = 0; peer < ranks; ++peer) {
    if (regions_[peer] == nullptr) continue;
    const auto theirs = schedule::sends(schedule, static_cast<Rank>(peer), near_).place;
    for (size_t channel = 0; channel < schedule.channels; ++channel)
      made.in[channel * ranks + peer] = theirs[channel * ranks + static_cast<size_t>(rank_)];
  }
  if (carried_room_ != 0) {
    made.carried_in = schedule::receives(schedule, rank_).place;
    made.carried_out = schedule::sends(schedule, rank_).place;
  } else {  // each connection's own
    made.carried_in.assign(made.out.size(), 0);
    made.carried_out = made.carried_in;
  }
  return places_.emplace(&schedule, std::move(made)).first->second;
}

Staging DeviceMemory::staging(const Plan& plan) {
  const Places& where = places(plan.schedule());
  Staging staging;
  staging.ranks = near_.size();
  staging.credits = slots_.credits;
  staging.place_bytes = (plan.message_bytes() + alignment - 1) / alignment * alignment;
  const size_t bytes = staging.credits * staging.place_bytes;  // of a connection
  const auto at = [&](std::byte* first, uint32_t place) {
    return first != nullptr && place != schedule::Sends::none ? first + place * bytes : nullptr;
  };
  for (size_t c = 0; c < where.out.size(); ++c) {
    const size_t peer = c % staging.ranks;
    const bool on_gpu = regions_[peer] != nullptr;
    staging.in.push_back(on_gpu ? at(regions_[peer], where.in[c]) : at(carried_[c].in, where.carried_in[c]));
    staging.out.push_back(on_gpu ? at(region_.get() + packet_bytes, where.out[c]) : at(carried_[c].out, where.carried_out[c]));
  }
  return staging;
}

}  // namespace gyre::engine
