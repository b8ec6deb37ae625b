#include "plugin/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "plugin/networks.h"
#include "plugin/tuner_file.h"

namespace gyre::plugin {
namespace {

// NCCL polls a connection in the making all the time, unless it was aborted.
constexpr std::chrono::minutes abandoned_after{10};  // longer than a process may be stopped

/// "mlx5_0:1 of ib0 at 10.0.0.1, port 1, 100000 Mbit/s, on /sys/devices/…, verbs by RoCE v2 10.0.0.1"
std::string description(const transport::NetDevice& d) {
  const std::string interface = d.interface.empty() || d.interface == d.name ? "" : " of " + d.interface;
  const std::string speed = d.mbit_per_s == 0 ? "speed unknown" : fmt::format("{} Mbit/s", d.mbit_per_s);
  const std::string verbs = d.verbs_words.empty() ? "" : fmt::format(", {} {}", d.verbs ? "verbs by" : "no verbs:", d.verbs_words);
  return fmt::format("{}{} at {}, port {}, {}, {}{}", d.name, interface, text_of(d.address), d.port, speed,
                     d.pci_path.empty() ? "not on PCI" : "on " + d.pci_path, verbs);
}

DeviceStats stats_of(const PluginDevice& device) {
  const auto& d = device.shown;
  return {d.name, d.interface, d.pci_path, d.port, d.mbit_per_s, device.members};
}

}  // namespace

Process& Process::get() {
  static auto* process = [] {
    // Stays right after NCCL has closed the .so, which is linked never to go.
    (void)std::atexit([] {
      get().stop_caretaker();
      get().stats().at_exit();
    });
    return new Process(std::make_unique<Networks>());
  }();
  return *process;
}

Result<Context*> Process::open(uint64_t communicator, int traffic_class) {
  const std::lock_guard lock(mutex_);
  if (!ready_) {
    config_ = GYRE_TRY(Config::from_environment());
    times_ = !config_.stats.value.empty();
    tuner_file_ = plugin::tuner_file(*config_.tuner_file).hash;  // whether it is right, the tuner says
    auto found = GYRE_TRY(provider_->devices(config_));
    for (auto& device : found) {
      const int index = static_cast<int>(devices_.size());
      log::info("device {}: {}", index, description(device));
      devices_.push_back({std::move(device), {index}});
    }
    physical_ = devices_.size();
    std::vector<DeviceStats> told;
    for (const auto& device : devices_) told.push_back(stats_of(device));
    stats_.start(*config_.stats, std::chrono::seconds(*config_.stats_seconds), std::move(told));
    ready_ = true;
  }
  if (contexts_.empty()) fresh_ = true;
  auto context = std::make_unique<Context>();
  context->communicator = communicator;
  context->traffic_class = traffic_class;
  return contexts_.insert(std::move(context)).first->get();
}

void Process::loaded_again() {
  const std::lock_guard lock(mutex_);
  fresh_ = comms_.empty() && connecting_.empty() && listening_.empty();
}

void Process::finalize(Context* context) {
  if (!context) return;
  std::vector<std::shared_ptr<void>> gone;  // destroyed without the lock, and so are the connections
  std::vector<Comm*> open;
  {
    const std::lock_guard lock(mutex_);
    const auto of_context = [&](auto& entry) {
      if (entry.second->group()->key.context != context) return false;
      gone.push_back(entry.second);
      return true;
    };
    std::erase_if(connecting_, of_context);
    std::erase_if(listening_, of_context);
    std::copy_if(comms_.begin(), comms_.end(), std::back_inserter(open), [&](Comm* c) { return c->group().key.context == context; });
    std::erase_if(contexts_, [&](const auto& c) { return c.get() == context; });
  }
  for (Comm* comm : open) close(comm);
  gone.clear();
  stats_.finish();
}

Status Process::check(int device) const {
  if (device >= 0 && static_cast<size_t>(device) < devices_.size()) return {};
  return Error{Code::invalid_argument, fmt::format("device {}: there are {}", device, devices_.size())};
}

// NCCL asks for devices when it has loaded the plugin, and again when it has fused some. The library stays in memory when NCCL unloads it,
// and the fused devices of its last life with it, which must not be taken for physical ones. Who never unloaded it does not ask again.
Result<int> Process::devices() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(fresh_, false)) devices_.resize(physical_);
  return static_cast<int>(devices_.size());
}

Result<Properties> Process::properties(int device) {
  const std::lock_guard lock(mutex_);
  GYRE_TRY(check(device));
  const auto& d = devices_[static_cast<size_t>(device)];
  const bool cuda = d.shown.gpu_memory && provider_->cuda();
  return Properties{d.shown, d.members, cuda, cuda && d.shown.dmabuf};
}

Result<int> Process::make_virtual_device(std::span<const int> members) {
  const std::lock_guard lock(mutex_);
  if (members.empty() || members.size() > 8)
    return Error{Code::invalid_argument, fmt::format("{} members; must be 1 to 8", members.size())};
  PluginDevice fused;
  for (const int member : members) {
    GYRE_TRY(check(member));
    const auto& physical = devices_[static_cast<size_t>(member)];
    const bool twice = std::find(fused.members.begin(), fused.members.end(), member) != fused.members.end();
    if (physical.members.size() != 1 || physical.members.front() != member || twice)
      return Error{Code::invalid_argument, fmt::format("device {} {}", member, twice ? "is named twice" : "is a fused one")};
    if (fused.members.empty())
      fused.shown = physical.shown;
    else {
      fused.shown.name += "+" + physical.shown.name;
      fused.shown.mbit_per_s += physical.shown.mbit_per_s;
      fused.shown.gpu_memory &= physical.shown.gpu_memory;
      fused.shown.dmabuf &= physical.shown.dmabuf;
    }
    fused.members.push_back(member);
  }
  devices_.push_back(std::move(fused));
  fresh_ = false;
  const int index = static_cast<int>(devices_.size()) - 1;
  log::info("device {}: {}, fused of {}", index, devices_.back().shown.name, fmt::join(devices_.back().members, ", "));
  stats_.add(stats_of(devices_.back()));
  return index;
}

Result<std::shared_ptr<Group>> Process::group(const Context* context, int device) {
  const std::lock_guard lock(mutex_);
  GYRE_TRY(check(device));
  const GroupKey key{context, device, std::this_thread::get_id()};
  {
    const std::lock_guard groups_lock(groups_mutex_);
    for (const auto& [raw, weak] : groups_) {
      if (raw->key != key) continue;
      if (auto group = weak.lock(); group && !group->any_stopped()) return group;  // not one that is being closed, or moves nothing
    }
  }
  std::vector<transport::NetDevice> members;
  for (const int member : devices_[static_cast<size_t>(device)].members) members.push_back(devices_[static_cast<size_t>(member)].shown);
  auto group = std::make_shared<Group>(*this, key, std::move(members));
  const std::lock_guard groups_lock(groups_mutex_);
  groups_.emplace_back(group.get(), group);
  return group;
}

void Process::remove(Group& group) {
  const std::lock_guard lock(groups_mutex_);
  std::erase_if(groups_, [&](const auto& entry) { return entry.first == &group; });
}

void Process::progress_others(Group& caller) {
  const std::unique_lock lock(groups_mutex_, std::try_to_lock);
  if (!lock) return;
  for (const auto& [group, weak] : groups_) {
    if (group == &caller) continue;
    const std::unique_lock turn(group->turn, std::try_to_lock);
    if (turn) group->progress();
  }
}

void Process::progress_idle() {
  const std::unique_lock lock(groups_mutex_, std::try_to_lock);
  if (!lock) return;
  for (const auto& [group, weak] : groups_) {
    if (std::exchange(group->seen_calls, group->calls()) != group->calls()) continue;
    const std::unique_lock turn(group->turn, std::try_to_lock);
    if (turn) group->progress();
  }
}

Comm* Process::give(std::unique_ptr<Comm> comm) {
  const std::lock_guard lock(mutex_);
  comms_.insert(comm.get());
  if (provider_->needs_calls(comm->way())) caretaker_.start();
  return comm.release();
}

void Process::settle() {
  const auto needed = [this] {
    const std::lock_guard lock(mutex_);
    return std::any_of(comms_.begin(), comms_.end(), [&](const Comm* comm) { return provider_->needs_calls(comm->way()); });
  };
  if (!needed()) caretaker_.stop();
  if (needed()) caretaker_.start();  // one has come meanwhile
  stats_.settle();
}

Result<ListenComm*> Process::listen(Context* context, int device, Handle handle) {
  forget_abandoned();
  auto group = GYRE_TRY(this->group(context, device));
  auto listener = GYRE_TRY(ListenComm::open(std::move(group), std::chrono::seconds(*config_.peer_timeout), handle));
  const std::lock_guard lock(mutex_);
  return (listening_[listener.get()] = listener).get();
}

Result<Comm*> Process::connect(Context* context, int device, Handle handle) {
  const auto content = GYRE_TRY(read_handle(handle));
  std::shared_ptr<Connecting> attempt;
  {
    const std::lock_guard lock(mutex_);
    const auto known = connecting_.find(attempt_of(handle));
    if (known != connecting_.end() && known->second->is_of(handle)) attempt = known->second;
  }
  if (!attempt) {
    auto group = GYRE_TRY(this->group(context, device));
    attempt = std::make_shared<Connecting>(std::move(group), content, handle, std::chrono::seconds(*config_.peer_timeout));
    note_attempt(handle, attempt->number());
    const std::lock_guard lock(mutex_);
    connecting_[attempt->number()] = attempt;
  }
  Result<std::unique_ptr<Comm>> made{std::unique_ptr<Comm>()};
  {
    const auto group = attempt->group();
    const std::lock_guard turn(group->turn);
    made = attempt->step();
  }
  if (made && !*made) return nullptr;
  note_attempt(handle, 0);
  {
    const std::lock_guard lock(mutex_);
    connecting_.erase(attempt->number());
  }
  if (!made) return std::move(made).error();
  return give(*std::move(made));
}

Result<Comm*> Process::accept(ListenComm* listener) {
  std::shared_ptr<ListenComm> kept;
  {
    const std::lock_guard lock(mutex_);
    const auto found = listening_.find(listener);
    if (found == listening_.end()) return Error{Code::invalid_argument, "this listener is closed, or was none"};
    kept = found->second;
  }
  const auto group = kept->group();
  const std::lock_guard turn(group->turn);
  auto comm = GYRE_TRY(kept->accept());
  if (!comm) return nullptr;
  return give(std::move(comm));
}

void Process::close(ListenComm* listener) {
  std::shared_ptr<ListenComm> gone;
  {
    const std::lock_guard lock(mutex_);
    const auto found = listening_.find(listener);
    if (found == listening_.end()) return;
    gone = std::move(found->second);
    listening_.erase(found);
  }
}

void Process::close(Comm* comm) {
  {
    const std::lock_guard lock(mutex_);
    if (comms_.erase(comm) == 0) return;
  }
  Comm::close(std::unique_ptr<Comm>(comm));
  settle();
}

void Process::forget_abandoned() {
  std::vector<std::shared_ptr<Connecting>> gone;
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  std::erase_if(connecting_, [&](const auto& entry) {
    if (now - entry.second->asked_at() < abandoned_after) return false;
    gone.push_back(entry.second);
    return true;
  });
}

}  // namespace gyre::plugin
