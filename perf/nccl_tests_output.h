// What nccl-tests prints, read back: the table of times, whether the results were right, and who ran it. Its columns have changed with its
// versions, so they are found by the line that names them; gyre-perf's own sweeps print the same. Other lines, such as a launcher's and
// NCCL's, are passed over.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gyre::perf {

/// Microseconds of a call by its size, which is that of the larger of a rank's input and output, as it is for NCCL's tuner. The mean of
/// what is there: out of place and in place, all types and roots. Error: no table, a row that can't be read, or wrong results, which alone
/// are Code::internal.
Result<std::map<uint64_t, double>> nccl_tests_times(std::string_view output);

struct NcclTestsRanks {
  int count = 0;                       ///< 0: not said
  std::string device;                  ///< of the first, such as "NVIDIA H100 80GB HBM3"; empty: not said
  std::map<std::string, int> on_host;  ///< ranks by the name of their host
};
NcclTestsRanks nccl_tests_ranks(std::string_view output);

}  // namespace gyre::perf
