// Rules that a user writes for NCCL's choices, in the CSV of NVIDIA's example tuner: a line for each,
//
//   collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]
//
// where bounds are inclusive, channels go to 64, -1 of them are NCCL's own number, and -1 in what follows is any. The first line that fits,
// and whose algorithm and protocol the communicator has, wins. Unlike there, a wrong word or number is an error with its line and column.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plugin/abi/tuner.h"

namespace gyre::plugin {

struct TunerRule {
  static constexpr int64_t any = -1;
  static constexpr int nccls_own = -1;

  ncclFunc_t collective = 0;
  uint64_t least_bytes = 0, most_bytes = 0;
  int algorithm = 0, protocol = 0;  ///< of a profile's also nccls_own, where gyre is beside or its job has nothing else
  int channels = 0;                 ///< 0: NCCL's own number
  int64_t nodes = any, ranks = any, operations = any, registered = any;
  int64_t most_nodes = any;      ///< `nodes` is the least of a range up to here; any: it is the number
  int64_t ranks_per_node = any;  ///< as many on each
  bool gyre_beside = false;      ///< gyre runs such calls, where it is beside NCCL; `algorithm` is what NCCL runs where it is not

  /// What calls of so many bytes took when the file was made, in words; for people only.
  struct Times {
    uint64_t bytes;
    std::string words;
  };
  std::vector<Times> measured{};

  bool has_algorithm() const { return algorithm != nccls_own; }
};

/// The rules of a text; `file` is its name, for errors.
Result<std::vector<TunerRule>> parse_tuner_rules(std::string_view text, std::string_view file);

}  // namespace gyre::plugin
