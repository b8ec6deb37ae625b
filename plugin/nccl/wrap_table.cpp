#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <type_traits>

#include "base/log.h"
#include "plugin/nccl/copies.h"
#include "plugin/nccl/wrap.h"
#include "plugin/nccl/wrap_comm.h"
#include "plugin/nccl/wrap_real.h"

namespace gyre::plugin::nccl::wrap {
namespace {

// NCCL's ranks wait for each other for ever; gyre's meet when NCCL's have.
constexpr size_t vote_limit_s = 10;

/// Of a function.
template <size_t bytes>
struct Name {
  constexpr Name(const char (&given)[bytes]) { std::copy_n(given, bytes, text); }  // NOLINT(google-explicit-constructor): as a literal
  char text[bytes]{};
};

/// Error: NCCL is at work on the communicator in the background, and not to be called for it elsewhere.
Status may_pass(ncclComm_t comm) {
  std::ignore = GYRE_TRY(settled_beside(comm));
  return {};
}
template <class Other>
Status may_pass(const Other& /*of no communicator*/) {
  return {};
}

/// What stands in the table that programs call where gyre has nothing before it: NCCL's function.
template <auto slot, Name name>
struct Passed;
template <class R, class... A, R (*Table::*slot)(A...), Name name>
struct Passed<slot, name> {
  static R call(A... arguments) noexcept {
    if constexpr (std::is_same_v<R, ncclResult_t>) {
      return answer(name.text, [&]() -> Result<ncclResult_t> {
        Status may;
        std::ignore = ((may = may_pass(arguments)) && ...);
        GYRE_TRY(may);
        return hear_real<slot>(arguments...);
      });
    } else {
      return call_real<slot>(arguments...);
    }
  }
};

#define GYRE_PASSED(result, name, parameters, arguments) &Passed<&Table::name, #name>::call,
constexpr Table passed_table{NCCL_FUNCTIONS(GYRE_PASSED)};
#undef GYRE_PASSED

#define GYRE_WRAP(name) (table.name = &wrap::name)

void wrap_making(Table& table) {
  GYRE_WRAP(ncclCommInitRank);
  GYRE_WRAP(ncclCommInitRankConfig);
  GYRE_WRAP(ncclCommInitRankScalable);
}

void wrap_all(Table& table) {
  table = passed_table;
  wrap_making(table);
  GYRE_WRAP(ncclSetEncryption);
  GYRE_WRAP(ncclGetUniqueId);
  GYRE_WRAP(ncclCommInitAll);
  GYRE_WRAP(ncclCommSplit);
  GYRE_WRAP(ncclCommShrink);
  GYRE_WRAP(ncclCommGrow);
  GYRE_WRAP(ncclCommWindowRegister);
  GYRE_WRAP(ncclCommWindowDeregister);
  GYRE_WRAP(ncclCommFinalize);
  GYRE_WRAP(ncclCommDestroy);
  GYRE_WRAP(ncclCommAbort);
  GYRE_WRAP(ncclCommRevoke);
  GYRE_WRAP(ncclCommGetAsyncError);
  GYRE_WRAP(ncclGetLastError);
  GYRE_WRAP(ncclAllReduce);
  GYRE_WRAP(ncclReduceScatter);
  GYRE_WRAP(ncclReduce);
  GYRE_WRAP(ncclBroadcast);
  GYRE_WRAP(ncclBcast);
  GYRE_WRAP(ncclAllGather);
  GYRE_WRAP(ncclAlltoAll);
  GYRE_WRAP(ncclGather);
  GYRE_WRAP(ncclScatter);
  GYRE_WRAP(ncclAllReduceConfig);
  GYRE_WRAP(ncclReduceScatterConfig);
  GYRE_WRAP(ncclReduceConfig);
  GYRE_WRAP(ncclBroadcastConfig);
  GYRE_WRAP(ncclAllGatherConfig);
  GYRE_WRAP(ncclAlltoAllConfig);
  GYRE_WRAP(ncclGatherConfig);
  GYRE_WRAP(ncclScatterConfig);
  GYRE_WRAP(ncclSend);
  GYRE_WRAP(ncclRecv);
  GYRE_WRAP(ncclPutSignal);
  GYRE_WRAP(ncclSignal);
  GYRE_WRAP(ncclWaitSignal);
  GYRE_WRAP(ncclGroupStart);
  GYRE_WRAP(ncclGroupEnd);
  GYRE_WRAP(ncclGroupSimulateEnd);
  GYRE_WRAP(ncclRedOpCreatePreMulSum);
  GYRE_WRAP(ncclRedOpDestroy);
}
#undef GYRE_WRAP

}  // namespace

Table wrapped_table(const Table& real, const Config& given) {
  Config config = given;
  if (const auto nccls = loaded_nccls(); nccls.size() > 1) {
    log::warn("this process has several copies of NCCL, {}: NCCL runs all calls", fmt::join(nccls, " and "));
    config.collectives.value.clear();
    config.tuner_file.value.clear();
  }
  if (const std::string why = why_no_profile(config); !why.empty()) log::warn("{}: NCCL runs all calls", why);
  if (config.timeout.origin == "default") config.timeout.value = vote_limit_s;
  set_up(real, config);
  Table table = real;
  if (offer().any())
    wrap_all(table);
  else
    wrap_making(table);
  return table;
}

}  // namespace gyre::plugin::nccl::wrap
