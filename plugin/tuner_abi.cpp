#include "plugin/tuner_abi.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "base/config.h"
#include "base/log.h"
#include "plugin/net_log.h"
#include "plugin/tuner.h"
#include "plugin/tuner_explanations.h"
#include "plugin/tuner_file.h"

namespace gyre::plugin {
namespace {

constexpr const char* tuner_name = "gyre";

void log_rules(const std::string& file, const TunerFile& content, size_t own, int64_t ranks, int64_t nodes) {
  const std::span<const TunerRule> rules = *content.rules;
  const auto all = std::ranges::count_if(rules, &TunerRule::has_algorithm);
  const bool profile = !rules.empty() && rules.front().ranks_per_node != TunerRule::any;
  if (file.empty())
    log::info("tuner: no GYRE_TUNER_FILE, all choices are NCCL's");
  else if (rules.empty())
    log::info("tuner: {} has no choices for NCCL, all are its own; gyre-perf tune_nccl or crossovers --profile adds some to a profile",
              file);
  else if (ranks == TunerRule::any)
    log::info("tuner: {} of {} rules in {} are for any number of ranks, others can't be told by this NCCL", own, all, file);
  else if (all_nccls_own(rules, ranks, nodes))
    log::info("tuner: all choices for {} ranks on {} nodes are NCCL's: {} has no others for them", ranks, nodes, file);
  else if (profile && own == 0)
    log::info("tuner: {} has no job of {} ranks on {} nodes, all choices are NCCL's: {}", file, ranks, nodes,
              why_none(rules, ranks, nodes));
  else
    log::info("tuner: {} of {} rules in {} are for {} ranks on {} nodes{}{}", own, all, file, ranks, nodes,
              content.predicted_for.empty() ? "" : ", predicted for ", content.predicted_for);
}

/// What NCCL has as the context of a communicator.
struct Context {
  Tuner tuner;
  std::unique_ptr<TunerExplanations> explanations;  ///< null: nobody wants them

  const TunerRule* choose(const TunerCall& call, const CostTable& table, bool priced = true) const noexcept {
    const TunerRule* rule = tuner.choose(call, table);
    if (explanations != nullptr) explanations->note(call, priced ? table : CostTable{nullptr, 0, 0}, rule);
    return rule;
  }
};

Result<std::unique_ptr<Context>> open_tuner(int64_t ranks, int64_t nodes) {
  const Config config = GYRE_TRY(Config::from_environment());
  const TunerFile& file = tuner_file(*config.tuner_file);
  if (!file.rules) return file.rules.error();
  auto explanations = *config.explain != 0 ? std::make_unique<TunerExplanations>(*config.tuner_file) : nullptr;
  auto opened = std::make_unique<Context>(Context{Tuner(*file.rules, ranks, nodes), std::move(explanations)});
  log_rules(*config.tuner_file, file, opened->tuner.rules(), ranks, nodes);
  return opened;
}

ncclResult_t init(size_t ranks, size_t nodes, ncclDebugLogger_t logger, void** context) {
  return logged_init("tuner init", logger, [&]() -> Status {
    if (context == nullptr) return Error{Code::invalid_argument, "context is NULL"};
    *context = nullptr;
    *context = GYRE_TRY(open_tuner(static_cast<int64_t>(ranks), static_cast<int64_t>(nodes))).release();
    return {};
  });
}

ncclResult_t init_newer(void** context, uint64_t, size_t ranks, size_t nodes, ncclDebugLogger_t logger, ncclNvlDomainInfo_v5_t*,
                        ncclTunerConstants_v5_t*) {
  return init(ranks, nodes, logger, context);
}

ncclResult_t destroy(void* context) {
  if (context == nullptr) return ncclSuccess;
  delete static_cast<Context*>(context);
  end_log();
  return ncclSuccess;
}

// From here on nothing fails: another code than success would end the collective, and so the job.

ncclResult_t choose(void* context, const TunerCall& call, const CostTable& table, int* channels) {
  if (context == nullptr || table.costs == nullptr) return ncclSuccess;
  const TunerRule* rule = static_cast<const Context*>(context)->choose(call, table);
  if (rule == nullptr) return ncclSuccess;
  *table.available(*rule) = 0;  // NCCL takes the least
  if (channels != nullptr && rule->channels > 0) *channels = rule->channels;
  return ncclSuccess;
}

// NCCL declares the table as what it is not.
CostTable table_of(float** table, int algorithms, int protocols) { return {reinterpret_cast<float*>(table), algorithms, protocols}; }

ncclResult_t choose_v3(void* context, ncclFunc_t collective, size_t bytes, int operations, float** table, int algorithms, int protocols,
                       int* channels) {
  return choose(context, {collective, bytes, operations}, table_of(table, algorithms, protocols), channels);
}

ncclResult_t choose_v4(void* context, ncclFunc_t collective, size_t bytes, int operations, float** table, int algorithms, int protocols,
                       int registered, int* channels) {
  return choose(context, {collective, bytes, operations, registered}, table_of(table, algorithms, protocols), channels);
}

// Before 2.22 NCCL does not say what is available, and takes what it is told. What every communicator has: rings, for all-reduces trees,
// with LL and Simple; LL128 corrupts data where the hardware can't keep its order.
ncclResult_t choose_untold(const Context* tuner, const TunerCall& call, int* algorithm, int* protocol, int* channels) {
  if (tuner == nullptr || algorithm == nullptr || protocol == nullptr) return ncclSuccess;
  constexpr float no = NCCL_ALGO_PROTO_IGNORE;
  const float tree = call.collective == ncclFuncAllReduce ? 1 : no;
  float costs[][NCCL_NUM_PROTOCOLS] = {{tree, no, tree}, {1, no, 1}};
  const TunerRule* rule = tuner->choose(call, {&costs[0][0], std::size(costs), NCCL_NUM_PROTOCOLS}, false);
  if (rule == nullptr) return ncclSuccess;
  *algorithm = rule->algorithm;
  *protocol = rule->protocol;
  if (channels != nullptr && rule->channels > 0) *channels = rule->channels;
  return ncclSuccess;
}

ncclResult_t choose_v2(void* context, ncclFunc_t collective, size_t bytes, int, int, int operations, int* algorithm, int* protocol,
                       int* channels) {
  return choose_untold(static_cast<const Context*>(context), {collective, bytes, operations}, algorithm, protocol, channels);
}

// Without a context there is one tuner of the process, made by the first init that succeeds, and never destroyed: which communicator asks
// is not known.
std::atomic<const Context*> only_tuner{nullptr};
std::atomic<int> inits{0};  // inits that succeeded; 2.19 destroys after others, too

ncclResult_t init_v1(size_t, size_t, ncclDebugLogger_t logger) {
  return logged_init("tuner init", logger, [&]() -> Status {
    auto tuner = GYRE_TRY(open_tuner(TunerRule::any, TunerRule::any));
    const Context* none = nullptr;
    if (only_tuner.compare_exchange_strong(none, tuner.get())) (void)tuner.release();
    ++inits;
    return {};
  });
}

ncclResult_t choose_v1(ncclFunc_t collective, size_t bytes, int, int, int operations, int* algorithm, int* protocol, int* channels) {
  return choose_untold(only_tuner, {collective, bytes, operations}, algorithm, protocol, channels);
}

// The last of them ends for all what is explained.
ncclResult_t destroy_v1() {
  for (int now = inits; now > 0;)
    if (inits.compare_exchange_weak(now, now - 1)) {
      const Context* tuner = only_tuner;
      if (now == 1 && tuner->explanations != nullptr) tuner->explanations->count();
      end_log();
      break;
    }
  return ncclSuccess;
}

}  // namespace
}  // namespace gyre::plugin

using namespace gyre::plugin;

// As with the net tables, nothing is left to a constructor.
extern "C" {
constinit const ncclTuner_v1_t ncclTunerPlugin_v1{tuner_name, init_v1, choose_v1, destroy_v1};
constinit const ncclTuner_v2_t ncclTunerPlugin_v2{tuner_name, init, choose_v2, destroy};
constinit const ncclTuner_v3_t ncclTunerPlugin_v3{tuner_name, init, choose_v3, destroy};
constinit const ncclTuner_v4_t ncclTunerPlugin_v4{tuner_name, init, choose_v4, destroy};
constinit const ncclTuner_v5_t ncclTunerPlugin_v5{tuner_name, init_newer, choose_v4, destroy};
constinit const ncclTuner_v6_t ncclTunerPlugin_v6{tuner_name, init_newer, choose_v4, destroy, nullptr};
}
