// What the net plugin has in this process: options, devices, groups, and what NCCL holds pointers to, so that a pointer that was closed
// already, or never ours, does no harm. After the last connection is closed nothing of it is open: no thread, no descriptor.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "plugin/caretaker.h"
#include "plugin/comm.h"
#include "plugin/connecting.h"
#include "plugin/listening.h"
#include "plugin/stats.h"

namespace gyre::plugin {

class Context {
 public:
  uint64_t communicator = 0;
  int traffic_class = -1;
};

struct PluginDevice {
  transport::NetDevice shown;
  std::vector<int> members;
};

class Process {
 public:
  explicit Process(std::unique_ptr<Provider> provider) : provider_(std::move(provider)) {}
  /// The one of the plugin. Never destroyed: NCCL's threads may be in it when the process ends.
  static Process& get();

  Provider& provider() { return *provider_; }
  /// Whether requests are timed, for GYRE_STATS.
  bool times() const { return times_; }
  /// What GYRE_TUNER_FILE has (TunerFile::hash), once something was opened.
  uint64_t tuner_file() const { return tuner_file_; }
  Stats& stats() { return stats_; }

  Result<Context*> open(uint64_t communicator, int traffic_class);
  void finalize(Context*);
  void loaded_again();
  Result<int> devices();
  Result<Properties> properties(int device);
  Result<int> make_virtual_device(std::span<const int> members);

  /// The calling thread's group.
  Result<std::shared_ptr<Group>> group(const Context*, int device);
  void remove(Group&);
  /// A request of one group may need that another moves on, whose requests nobody tests at the moment.
  void progress_others(Group&);
  /// Those that nobody has called since the last time. For the caretaker.
  void progress_idle();
  void stop_caretaker() { caretaker_.stop(); }

  Result<ListenComm*> listen(Context*, int device, Handle);
  Result<Comm*> connect(Context*, int device, Handle);
  Result<Comm*> accept(ListenComm*);
  void close(ListenComm*);
  void close(Comm*);

 private:
  Status check(int device) const;
  /// NCCL has one connection more.
  Comm* give(std::unique_ptr<Comm>);
  /// Connections were closed.
  void settle();
  void forget_abandoned();

  std::unique_ptr<Provider> provider_;
  Stats stats_;
  std::mutex mutex_;  // of all below
  bool ready_ = false;
  bool fresh_ = false;  // nobody was there before, so NCCL may have loaded the plugin again and know of physical devices only
  bool times_ = false;
  uint64_t tuner_file_ = 0;
  Config config_;
  std::vector<PluginDevice> devices_;
  size_t physical_ = 0;  // the first so many of them
  std::set<std::unique_ptr<Context>, std::less<>> contexts_;
  std::map<uint64_t, std::shared_ptr<Connecting>> connecting_;
  std::map<const void*, std::shared_ptr<ListenComm>> listening_;
  std::set<Comm*> comms_;
  std::mutex groups_mutex_;
  std::vector<std::pair<Group*, std::weak_ptr<Group>>> groups_;
  Caretaker caretaker_{[this] { progress_idle(); }};
};

}  // namespace gyre::plugin
