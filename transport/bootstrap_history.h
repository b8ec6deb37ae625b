// The latest calls that a rank has made, for those who ask when another rank waits in vain. Written by the thread that makes the calls, a
// few stores each; read by the one that watches the connections, so a rank answers whatever it does.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "transport/bootstrap_wire.h"

namespace gyre::transport::bootstrap {

/// A call that a rank has made, or would have if it had not refused it.
struct Made {
  uint64_t number = 0;
  uint64_t plan = 0;
  bool refused = false;
  std::string text;

  /// Nobody waits in a call that all ranks refuse, whatever their reasons.
  bool differs(const Made& other) const { return refused != other.refused || (!refused && plan != other.plan); }
};

class History {
 public:
  static constexpr size_t kept = 256;

  /// Calls are numbered from 0. One thread.
  void add(uint64_t number, uint64_t plan, bool refused);
  /// What a plan is called; before add() of it.
  void name(uint64_t plan, std::string_view text);
  /// The latest calls, the oldest first, as Kind::history for question `question`. Any thread.
  Message message(uint64_t question) const;

 private:
  struct Slot {
    std::atomic<uint64_t> state{0};  ///< number + 1, then a bit that says whether it was refused; 0: nothing, or being written
    std::atomic<uint64_t> plan{0};
  };
  static constexpr size_t most_names = 1024;

  std::vector<Made> calls() const;

  std::array<Slot, kept> slots_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::map<uint64_t, std::string> names_;
};

/// What message() says after its question; empty where it is no such message.
std::vector<Made> take_history(std::string_view payload);

/// How the first call differs that two ranks have made unlike each other; empty: none is known. By rank. A rank that has not come to a
/// call yet may be computing.
std::string compare_histories(const std::vector<std::vector<Made>>& ranks);
/// The first call that two ranks have made unlike each other.
std::optional<uint64_t> first_difference(const std::vector<std::vector<Made>>& ranks);

}  // namespace gyre::transport::bootstrap
