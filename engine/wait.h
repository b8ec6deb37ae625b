// How a rank waits for its peers: it polls; after a while it lets others have its processor between polls; then it sleeps until a peer of
// its host wakes it, or something comes by a network that tells of it. How long it does each is its own affair, and no other rank's. No
// system call while messages keep coming.
#pragma once
#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/work.h"
#include "transport/doorbell.h"
#include "transport/transport.h"

namespace gyre::engine {

inline void relax_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// What a rank finds where it waits.
struct Surroundings {
  bool crowded = false;                        ///< the host has more ranks than processors
  bool by_kernel = false;                      ///< a poll is a system call
  std::vector<transport::Worker*> networks{};  ///< by which comes what rings no bell
  transport::Doorbell* doorbell = nullptr;     ///< null: nobody wakes this rank
};

/// How long it waits in which way.
struct Patience {
  int looks;                        ///< at one peer before it is left for later (engine/direct.h)
  uint64_t spins;                   ///< polls that keep the processor
  std::chrono::nanoseconds yields;  ///< polls that let others have it; max(): for ever
  bool for_ever;                    ///< it spins on and does neither

  /// `wait`: GYRE_WAIT.
  static Patience of(std::string_view wait, const Surroundings&);
};

class Waiter {
 public:
  /// `wait`: GYRE_WAIT. What is around must outlive it.
  Waiter(std::string_view wait, const Surroundings& around)
      : patience_(Patience::of(wait, around)), networks_(around.networks), doorbell_(around.doorbell) {}

  /// Something moved: the next wait starts afresh.
  void reset() {
    idle_ = 0;
    if (armed_) [[unlikely]]
      rise();
  }
  /// Lets a moment pass; no other thread touches the networks meanwhile. True now and then: time to look at what a waiting rank should look
  /// at rarely. `awake`: something else is to be looked at soon, so that it must not sleep until it is woken.
  bool pause(const Work& work, bool awake) {
    if (++idle_ > patience_.spins) return leave(work, awake);
    relax_processor();
    return false;
  }
  /// The same of one that does something else before it polls again, and looks at all each time.
  void pass();
  /// A network has brought something, which will wake nobody any more: all is looked at again before this rank sleeps.
  void stir() {
    if (armed_) [[unlikely]]
      rise();
  }
  /// How often to look for one peer, that is about to come, before others are looked for.
  int looks() const { return patience_.looks; }
  /// How long nothing has moved, to the precision of pause()'s true.
  std::chrono::steady_clock::duration waited() const { return waited_; }

 private:
  bool leave(const Work&, bool awake);
  bool spin_on(uint64_t left);
  bool yield(uint64_t left);
  bool sleep(const Work&);
  bool arm(const Work&);
  bool nap_blindly();
  std::chrono::nanoseconds nap() const;
  void shun(std::chrono::steady_clock::time_point before);
  void rise();
  void look_at_clock(uint64_t left);

  Patience patience_;
  std::vector<transport::Worker*> networks_;
  transport::Doorbell* doorbell_;
  std::vector<pollfd> awaited_;  // of the networks
  uint64_t idle_ = 0;
  bool armed_ = false;    // peers see that it sleeps, or is about to, and networks wake it
  bool refused_ = false;  // a network could not be armed, and all was looked at once more
  std::chrono::steady_clock::time_point since_, now_;
  std::chrono::steady_clock::duration waited_{};
  std::chrono::steady_clock::time_point counted_since_;  // what yields take
  std::chrono::nanoseconds lost_{};                      // by those that took long
  std::chrono::steady_clock::time_point shunned_until_;  // yields
  std::chrono::nanoseconds shunning_{};                  // for so long
};

}  // namespace gyre::engine
