#include "plugin/tuner.h"

#include <limits>
#include <vector>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::plugin;

namespace {

struct Costs {
  std::vector<float> all = std::vector<float>(size_t{NCCL_NUM_ALGORITHMS} * NCCL_NUM_PROTOCOLS, 5.f);
  CostTable table() { return {all.data(), NCCL_NUM_ALGORITHMS, NCCL_NUM_PROTOCOLS}; }
};

std::vector<TunerRule> tuner_rules(std::string_view text) { return *parse_tuner_rules(text, "rules"); }

/// The channels of the rule that is chosen; 0: none.
int chosen(const Tuner& tuner, const TunerCall& call) {
  Costs costs;
  const TunerRule* rule = tuner.choose(call, costs.table());
  return rule == nullptr ? 0 : rule->channels;
}

}  // namespace

TEST_CASE("the first rule that fits a call is chosen, and none where none does") {
  const auto rules = tuner_rules(
      "allreduce,0,1024,tree,ll,1,-1,-1\n"
      "allreduce,1024,4096,ring,ll,2,-1,-1\n"
      "allgather,0,4096,ring,ll,3,-1,-1,4\n"
      "allgather,0,4096,ring,ll,4,-1,-1,-1,1\n");
  const Tuner tuner(rules, 8, 2);
  CHECK(chosen(tuner, {ncclFuncAllReduce, 0, 1}) == 1);
  CHECK(chosen(tuner, {ncclFuncAllReduce, 1024, 1}) == 1);
  CHECK(chosen(tuner, {ncclFuncAllReduce, 1025, 1}) == 2);
  CHECK(chosen(tuner, {ncclFuncAllReduce, 4096, 1}) == 2);
  CHECK(chosen(tuner, {ncclFuncAllReduce, 4097, 1}) == 0);
  CHECK(chosen(tuner, {ncclFuncBroadcast, 8, 1}) == 0);
  CHECK(chosen(tuner, {99, 8, 1}) == 0);
  CHECK(chosen(tuner, {ncclFuncAllGather, 8, 4, 1}) == 3);
  CHECK(chosen(tuner, {ncclFuncAllGather, 8, 1, 1}) == 4);
  CHECK(chosen(tuner, {ncclFuncAllGather, 8, 1, 0}) == 0);
  CHECK(chosen(tuner, {ncclFuncAllGather, 8, 1}) == 0);  // an NCCL that does not say whether
}

TEST_CASE("rules of another size of communicator are left out, and all that name one where it is not known") {
  const auto rules = tuner_rules(
      "allreduce,0,8,ring,ll,1,2,16\n"
      "allreduce,0,8,ring,ll,2,2,-1\n"
      "allreduce,0,8,ring,ll,3,-1,16\n"
      "allreduce,0,8,ring,ll,4,-1,-1\n");
  const auto first = [&](int64_t ranks, int64_t nodes) { return chosen(Tuner(rules, ranks, nodes), {ncclFuncAllReduce, 8, 1}); };
  CHECK(first(16, 2) == 1);
  CHECK(first(8, 2) == 2);
  CHECK(first(16, 4) == 3);
  CHECK(first(8, 4) == 4);
  CHECK(Tuner(rules, TunerRule::any, TunerRule::any).rules() == 1);
  CHECK(first(TunerRule::any, TunerRule::any) == 0);  // without its channels, since such an NCCL would take what it does not have
}

TEST_CASE("a rule whose algorithm and protocol a communicator lacks is passed over") {
  const auto rules = tuner_rules(
      "allreduce,0,8,nvls,simple,1,-1,-1\n"
      "allreduce,0,8,pat,simple,2,-1,-1\n"
      "allreduce,0,8,ring,ll128,3,-1,-1\n");
  const Tuner tuner(rules, 8, 1);
  const TunerCall call{ncclFuncAllReduce, 8, 1};
  Costs costs;
  CHECK(tuner.choose(call, costs.table())->channels == 1);
  float& nvls = costs.all[size_t{NCCL_ALGO_NVLS} * NCCL_NUM_PROTOCOLS + NCCL_PROTO_SIMPLE];
  for (const float ignored : {NCCL_ALGO_PROTO_IGNORE, -2.f, std::numeric_limits<float>::quiet_NaN()}) {
    nvls = ignored;
    CHECK(tuner.choose(call, costs.table())->channels == 2);
  }
  // 2.22 has no PAT: such a table is shorter, and nothing behind it is looked at.
  CHECK(tuner.choose(call, {costs.all.data(), 6, NCCL_NUM_PROTOCOLS})->channels == 3);
  CHECK(tuner.choose(call, {costs.all.data(), 6, 1}) == nullptr);
  CHECK(tuner.choose(call, {costs.all.data(), 0, 0}) == nullptr);
}

TEST_CASE("channels stay NCCL's where it goes by CollNet and would take a number that it does not have") {
  const auto rules = tuner_rules(
      "allreduce,0,1,nvls,simple,1,-1,-1\n"
      "allreduce,2,2,collnet_direct,simple,2,-1,-1\n"
      "allreduce,3,3,collnet_chain,simple,3,-1,-1\n"
      "allreduce,4,4,nvls_tree,simple,4,-1,-1\n");
  Costs costs;
  const auto channels = [&](int64_t nodes, uint64_t bytes) {
    const Tuner tuner(rules, 8, nodes);
    const TunerRule* rule = tuner.choose({ncclFuncAllReduce, bytes, 1}, costs.table());
    REQUIRE(rule != nullptr);
    return rule->channels;
  };
  CHECK(channels(1, 1) == 1);
  CHECK(channels(2, 1) == 0);
  CHECK(channels(1, 2) == 0);
  CHECK(channels(1, 3) == 0);
  CHECK(channels(2, 4) == 4);
}
