// Every schedule that differs from a given one in a single respect: a step dropped, swapped with its neighbour or moved to another
// strand, or an operand changed.
#pragma once
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace gyre::test {

class Mutants {
 public:
  explicit Mutants(const schedule::Schedule& original) : original_(original) {}

  /// Calls f(what was changed, schedule) for each.
  template <class F>
  void each(F&& f) const {
    for (size_t p = 0; p < original_.programs.size(); ++p) {
      for (size_t s = 0; s < original_.programs[p].steps.size(); ++s) {
        const auto with = [&](const std::string& what, auto change) {
          schedule::Schedule mutant = original_;
          change(mutant, mutant.programs[p].steps);
          f("program " + std::to_string(p) + " step " + std::to_string(s) + ": " + what, mutant);
        };
        reorder(p, s, with);
        for (const auto operand : {&schedule::Step::src, &schedule::Step::dst}) change_chunks(p, s, operand, with);
        for (const auto side : {&schedule::Step::from, &schedule::Step::to}) change_peers(p, s, side, with);
        change_place(p, s, with);
      }
    }
  }

 private:
  using Schedule = schedule::Schedule;
  using Steps = std::vector<schedule::Step>;
  const schedule::Step& step(size_t p, size_t s) const { return original_.programs[p].steps[s]; }

  template <class With>
  void reorder(size_t p, size_t s, const With& with) const {
    const auto at = static_cast<std::ptrdiff_t>(s);
    with("dropped", [&](Schedule&, Steps& steps) { steps.erase(steps.begin() + at); });
    with("twice", [&](Schedule&, Steps& steps) { steps.insert(steps.begin() + at, schedule::Step(steps[s])); });
    if (s + 1 != original_.programs[p].steps.size()) {
      with("swapped with the next", [&](Schedule&, Steps& steps) { std::swap(steps[s], steps[s + 1]); });
    }
    for (size_t other = 0; other < original_.programs.size(); ++other) {
      if (other == p || original_.programs[other].rank != original_.programs[p].rank) continue;
      for (const bool first : {true, false}) {
        with("moved to program " + std::to_string(other) + (first ? " in front" : " at the end"), [&](Schedule& mutant, Steps& steps) {
          Steps& to = mutant.programs[other].steps;
          to.insert(first ? to.begin() : to.end(), steps[s]);
          steps.erase(steps.begin() + at);
        });
      }
    }
  }

  template <class With>
  void change_chunks(size_t p, size_t s, schedule::Chunks schedule::Step::*operand, const With& with) const {
    const schedule::Chunks was = step(p, s).*operand;
    const auto put = [&](const std::string& what, schedule::Chunks chunks) {
      with((operand == &schedule::Step::src ? "src, " : "dst, ") + what, [&](Schedule&, Steps& steps) { steps[s].*operand = chunks; });
    };
    for (const auto buffer : {schedule::Buffer::input, schedule::Buffer::output, schedule::Buffer::scratch}) {
      if (!was.present()) put("an operand more", {buffer, 0, 1});
      if (was.present() && buffer != was.buffer) put("another buffer", {buffer, was.first, was.count, was.stride});
    }
    if (!was.present()) return;
    put("an operand less", {});
    put("a chunk more", {was.buffer, was.first, was.count + 1, was.stride});
    if (was.count > 1) put("a chunk less", {was.buffer, was.first, was.count - 1, was.stride});
    if (was.count > 1) put("another stride", {was.buffer, was.first, was.count, was.stride + 1});
    const auto most = original_.chunks * static_cast<uint32_t>(original_.ranks);
    for (uint32_t chunk = 0; chunk < most; ++chunk) {
      if (chunk != was.first) put("chunk " + std::to_string(chunk), {was.buffer, chunk, was.count, was.stride});
    }
  }

  template <class With>
  void change_peers(size_t p, size_t s, schedule::Peers schedule::Step::*side, const With& with) const {
    const schedule::Peers peers = step(p, s).*side;
    for (uint32_t i = peers.first; i < peers.first + peers.count; ++i) {
      for (Rank peer = 0; peer < original_.ranks; ++peer) {
        if (peer == original_.programs[p].rank || peer == original_.peer_table[i]) continue;
        with("peer " + std::to_string(peer), [&](Schedule& mutant, Steps&) { mutant.peer_table[i] = peer; });
      }
    }
    if (peers.count != 0) with("a peer less", [&](Schedule&, Steps& steps) { --(steps[s].*side).count; });
    if (peers.count > 1) {
      with("peers in another order",
           [&](Schedule& mutant, Steps&) { std::swap(mutant.peer_table[peers.first], mutant.peer_table[peers.first + 1]); });
    }
  }

  template <class With>
  void change_place(size_t p, size_t s, const With& with) const {
    const schedule::Step& was = step(p, s);
    if (!was.reduces() || !was.src.present()) return;
    for (uint32_t place = 0; place <= was.from.count; ++place) {
      if (place != was.place) with("place " + std::to_string(place), [&](Schedule&, Steps& steps) { steps[s].place = place; });
    }
  }

  const schedule::Schedule& original_;
};

}  // namespace gyre::test
