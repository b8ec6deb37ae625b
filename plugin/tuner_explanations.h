// GYRE_EXPLAIN for NCCL's choices: for every kind of call (collective and size class), and each choice in it, what NCCL could run and at
// what it prices that, why it is the choice, and what that took when it was measured for the file; and at the communicator's end, or the
// process's, how often each was. Every rank says it, since a tuner is not told which it is.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "plugin/tuner.h"

namespace gyre::plugin {

class TunerExplanations {
 public:
  /// `file`: GYRE_TUNER_FILE; empty: there is none.
  explicit TunerExplanations(std::string file);
  TunerExplanations(const TunerExplanations&) = delete;
  TunerExplanations& operator=(const TunerExplanations&) = delete;
  ~TunerExplanations();

  /// Of a call and what fits it, before its entry is made the cheapest; null: NCCL's own choice. Without prices the table is empty.
  void note(const TunerCall&, const CostTable&, const TunerRule*) noexcept;
  /// Says what was used how often since the last time, and begins anew.
  void count() noexcept;

 private:
  /// Of size class n are calls of 2^(n-1) to 2^n - 1 bytes, of 0 those of none. Of NCCL's own choices the entry that it prices least.
  using Key = std::tuple<ncclFunc_t, int, const TunerRule*, int>;
  struct Used {
    std::string choice;  ///< in words
    uint64_t calls = 0;
  };
  std::string in_words(const TunerRule*, int entry, const CostTable&) const;

  std::string file_;
  std::mutex mutex_;
  std::map<Key, Used> used_;
};

}  // namespace gyre::plugin
