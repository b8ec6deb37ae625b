#include "engine/wait.h"

#include <sched.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace gyre::engine {
namespace {

using namespace std::chrono_literals;

// About 10 us of polling, the cost of a few switches of processes: should a peer wait for this processor after all, it gets it soon.
// With more ranks than processors whoever polls is in the way.
constexpr uint64_t free_spins = 400, crowded_spins = 4;
constexpr uint64_t crowded_calls = 1;  // which take as long as those spins
constexpr int free_looks = 300, crowded_looks = 4;

// Who sleeps is woken in some 20 us, so that this adds a few percent at most to what is waited for. In less time the ranks of a crowded
// host may not all have had their turn, and ranks that yield are faster than ranks that sleep, if nobody else is there.
constexpr std::chrono::nanoseconds short_yields = 500us;
// What comes by a network wakes it later than that or, where the network can't, is seen after a nap, which takes some 100 us.
constexpr std::chrono::nanoseconds long_yields = 5ms;
// A yield that takes so long gave the processor to a program that computes. Where most of the time goes so, it comes back much sooner to a
// rank that sleeps, and yields are left alone for a while: a longer one each time that they have then failed again. A few such yields
// mean nothing: ranks that sleep and ranks that yield oust each other.
constexpr std::chrono::nanoseconds ousted = 500us, counting = 60ms, shortest_shunning = 250ms, longest_shunning = 4s;

// However it waits, it looks for bad news so often. Where a ring may be lost, or what comes does not ring, that is how late it is seen.
constexpr std::chrono::nanoseconds longest_nap = 10ms, unsure_nap = 1ms, blind_nap = 50us;

constexpr uint64_t look_every = 64, look_every_spin = 1024;

}  // namespace

Patience Patience::of(std::string_view wait, const Surroundings& around) {
  const uint64_t few = around.by_kernel ? crowded_calls : crowded_spins;
  Patience p{around.crowded ? crowded_looks : free_looks, around.crowded ? few : free_spins,
             around.networks.empty() ? short_yields : long_yields, false};
  if (wait == "spin") p.for_ever = true;
  if (wait == "yield") p.yields = std::chrono::nanoseconds::max();
  if (wait == "sleep") p = {crowded_looks, crowded_spins, 0ns, false};
  return p;
}

void Waiter::pass() {
  idle_ = std::max(idle_, patience_.spins) + 1;
  look_at_clock(idle_ - patience_.spins);
}

bool Waiter::leave(const Work& work, bool awake) {
  const uint64_t left = idle_ - patience_.spins;
  if (patience_.for_ever) return spin_on(left);
  look_at_clock(left);
  const bool for_ever = patience_.yields == std::chrono::nanoseconds::max();
  if (for_ever || (waited_ < patience_.yields && now_ >= shunned_until_)) return yield(left);
  return awake ? nap_blindly() : sleep(work);
}

bool Waiter::spin_on(uint64_t left) {
  relax_processor();
  if (left % look_every_spin != 0) return false;
  look_at_clock(left / look_every_spin);
  return true;
}

bool Waiter::yield(uint64_t left) {
  const auto before = now_;
  sched_yield();
  look_at_clock(left + 1);
  if (now_ - before > ousted) lost_ += now_ - before;
  if (now_ - counted_since_ > counting) {
    if (lost_ > (now_ - counted_since_) / 2) shun(before);
    counted_since_ = now_;
    lost_ = {};
  }
  return left % look_every == 0;
}

void Waiter::shun(std::chrono::steady_clock::time_point before) {
  const bool again = before - shunned_until_ < 2 * counting;
  shunning_ = again ? std::min(2 * shunning_, longest_shunning) : shortest_shunning;
  shunned_until_ = now_ + shunning_;
}

bool Waiter::nap_blindly() {
  std::this_thread::sleep_for(blind_nap);
  return true;
}

// In two steps: what came before the peers could see that it sleeps must be looked for in between.
bool Waiter::sleep(const Work& work) {
  if (doorbell_ == nullptr) return nap_blindly();
  if (!armed_) return arm(work);
  networks_.empty() ? doorbell_->sleep(nap()) : doorbell_->sleep(nap(), awaited_);
  rise();
  return true;
}

// What keeps a network from it has often come by then; else it may stay for long.
bool Waiter::arm(const Work& work) {
  awaited_.clear();
  armed_ = std::all_of(networks_.begin(), networks_.end(), [this](transport::Worker* network) { return network->arm(awaited_); });
  if (!armed_) return std::exchange(refused_, !refused_) && nap_blindly();
  refused_ = false;
  doorbell_->arm(work.awaits_only());
  return false;
}

std::chrono::nanoseconds Waiter::nap() const {
  const auto rung = doorbell_->rung();
  return !rung.by_all ? blind_nap : rung.sure ? longest_nap : unsure_nap;
}

void Waiter::rise() {
  armed_ = false;
  doorbell_->disarm();
}

void Waiter::look_at_clock(uint64_t left) {
  now_ = std::chrono::steady_clock::now();
  if (left == 1) since_ = now_;
  waited_ = now_ - since_;
}

}  // namespace gyre::engine
