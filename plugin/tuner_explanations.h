// GYRE_EXPLAIN for NCCL's choices: for every kind of call (collective and size class) what NCCL could run and at what it prices that, what
// is chosen and why; and at the communicator's end what was used how often. Every rank says it, since a tuner is not told which it is.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "plugin/tuner.h"

namespace gyre::plugin {

class TunerExplanations {
 public:
  /// `file`: GYRE_TUNER_FILE; empty: there is none.
  explicit TunerExplanations(std::string file) : file_(std::move(file)) {}
  TunerExplanations(const TunerExplanations&) = delete;
  TunerExplanations& operator=(const TunerExplanations&) = delete;
  ~TunerExplanations();  ///< says what was used

  /// Of a call and what fits it, before its entry is made the cheapest; null: NCCL's own choice. Without prices the table is empty.
  void note(const TunerCall&, const CostTable&, const TunerRule*) noexcept;

 private:
  using Kind = std::pair<ncclFunc_t, int>;  ///< of class n are calls of 2^(n-1) to 2^n - 1 bytes; of 0 those of none

  std::string file_;
  std::mutex mutex_;
  std::map<Kind, std::map<std::string, uint64_t>> used_;  // by choice
};

}  // namespace gyre::plugin
