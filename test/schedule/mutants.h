// Every schedule that differs from a given one in a single respect: a step dropped, two neighbours swapped, or an operand changed.
#pragma once
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace gyre::test {

struct Mutant {
  std::string what;
  schedule::Schedule schedule;
};

class Mutants {
 public:
  explicit Mutants(const schedule::Schedule& original) : original_(original) {
    for (size_t program = 0; program < original.programs.size(); ++program) {
      for (size_t step = 0; step < original.programs[program].steps.size(); ++step) {
        drop(program, step);
        swap(program, step);
        change_chunks(program, step, &schedule::Step::src);
        change_chunks(program, step, &schedule::Step::dst);
        change_peers(program, step, original.programs[program].steps[step].from);
        change_peers(program, step, original.programs[program].steps[step].to);
        change_place(program, step);
      }
    }
  }
  const std::vector<Mutant>& all() const { return all_; }

 private:
  using Steps = std::vector<schedule::Step>;

  template <class Change>
  void add(size_t program, size_t step, const std::string& what, Change change) {
    Mutant& mutant =
        all_.emplace_back(Mutant{"program " + std::to_string(program) + " step " + std::to_string(step) + ": " + what, original_});
    change(mutant.schedule);
  }
  void drop(size_t program, size_t step) {
    add(program, step, "dropped", [&](auto& s) {
      Steps& steps = s.programs[program].steps;
      steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(step));
    });
  }
  void swap(size_t program, size_t step) {
    if (step + 1 == original_.programs[program].steps.size()) return;
    add(program, step, "swapped with the next",
        [&](auto& s) { std::swap(s.programs[program].steps[step], s.programs[program].steps[step + 1]); });
  }
  void change_chunks(size_t program, size_t step, schedule::Chunks schedule::Step::*operand) {
    const schedule::Chunks was = original_.programs[program].steps[step].*operand;
    const auto put = [&](const std::string& what, schedule::Chunks chunks) {
      add(program, step, what, [&](auto& s) { s.programs[program].steps[step].*operand = chunks; });
    };
    const auto other = was.buffer == schedule::Buffer::input ? schedule::Buffer::output : schedule::Buffer::input;
    if (!was.present()) {
      put("an operand more", {schedule::Buffer::input, 0, 1});
      put("an operand more", {schedule::Buffer::output, 0, 1});
      return;
    }
    put("an operand less", {});
    put("the other buffer", {other, was.first, was.count, was.stride});
    for (uint32_t chunk = 0; chunk < original_.chunks; ++chunk) {
      if (chunk != was.first) put("chunk " + std::to_string(chunk), {was.buffer, chunk, was.count, was.stride});
    }
  }
  void change_peers(size_t program, size_t step, schedule::Peers peers) {
    const Rank own = original_.programs[program].rank;
    for (uint32_t i = peers.first; i < peers.first + peers.count; ++i) {
      for (Rank peer = 0; peer < original_.ranks; ++peer) {
        if (peer == own || peer == original_.peer_table[i]) continue;
        add(program, step, "peer " + std::to_string(peer), [&](auto& s) { s.peer_table[i] = peer; });
      }
    }
  }
  void change_place(size_t program, size_t step) {
    const schedule::Step& was = original_.programs[program].steps[step];
    if (!was.reduces() || !was.src.present()) return;
    for (uint32_t place = 0; place <= was.from.count; ++place) {
      if (place != was.place) {
        add(program, step, "place " + std::to_string(place), [&](auto& s) { s.programs[program].steps[step].place = place; });
      }
    }
  }

  const schedule::Schedule& original_;
  std::vector<Mutant> all_;
};

}  // namespace gyre::test
