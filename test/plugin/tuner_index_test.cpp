#include "plugin/tuner_index.h"

#include <algorithm>
#include <limits>
#include <random>

#include "plugin/tuner.h"
#include "test/catch.h"

using namespace gyre;
using namespace gyre::plugin;

namespace {

constexpr size_t kinds = size_t{NCCL_NUM_ALGORITHMS} * NCCL_NUM_PROTOCOLS;
constexpr uint64_t largest = std::numeric_limits<uint64_t>::max();

/// What choose() must find: the first of all rules, one after the other.
const TunerRule* first_of_all(std::span<const TunerRule> rules, const TunerCall& call, const CostTable& table) {
  const auto fits = [](int64_t wanted, int64_t is) { return wanted == TunerRule::any || wanted == is; };
  for (const TunerRule& rule : rules)
    if (rule.collective == call.collective && rule.least_bytes <= call.bytes && call.bytes <= rule.most_bytes &&
        fits(rule.operations, call.operations) && fits(rule.registered, call.registered) && table.available(rule) != nullptr)
      return &rule;
  return nullptr;
}

/// Few values of everything, so that rules overlap, hide each other, and begin and end at the same sizes.
struct Dice {
  std::mt19937 random;

  int up_to(int most) { return static_cast<int>(random() % static_cast<unsigned>(most + 1)); }
  uint64_t size() { return up_to(9) == 0 ? largest - static_cast<uint64_t>(up_to(1)) : static_cast<uint64_t>(up_to(12)); }
  TunerRule rule(int number) {
    TunerRule rule;
    rule.collective = up_to(2);
    rule.least_bytes = size(), rule.most_bytes = size();
    if (rule.most_bytes < rule.least_bytes) std::swap(rule.least_bytes, rule.most_bytes);
    rule.algorithm = up_to(NCCL_NUM_ALGORITHMS - 1), rule.protocol = up_to(NCCL_NUM_PROTOCOLS - 1);
    rule.channels = number;
    rule.operations = up_to(1) == 0 ? TunerRule::any : up_to(2);
    rule.registered = up_to(1) == 0 ? TunerRule::any : up_to(1);
    return rule;
  }
  TunerCall call() { return {up_to(3), size(), up_to(3), up_to(2) - 1}; }
};

}  // namespace

TEST_CASE("the index finds the rule that a look at all finds, whatever the rules, the call and what a communicator has") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    Dice dice{std::mt19937(seed)};
    std::vector<TunerRule> rules;
    for (int number = 1, count = dice.up_to(60); number <= count; ++number) rules.push_back(dice.rule(number));
    const Tuner tuner(rules, 1, 1);  // a node, where all algorithms but CollNet's keep their channels, the number of a rule here
    for (int i = 0; i < 100; ++i) {
      std::vector<float> costs(kinds, 1);
      for (float& cost : costs)
        if (dice.up_to(2) == 0) cost = NCCL_ALGO_PROTO_IGNORE;
      const TunerCall call = dice.call();
      const CostTable table{costs.data(), NCCL_NUM_ALGORITHMS, NCCL_NUM_PROTOCOLS};
      const TunerRule* wanted = first_of_all(rules, call, table);
      const TunerRule* found = tuner.choose(call, table);
      REQUIRE((found == nullptr) == (wanted == nullptr));
      if (found == nullptr) continue;
      const bool collnet = wanted->algorithm == NCCL_ALGO_COLLNET_DIRECT || wanted->algorithm == NCCL_ALGO_COLLNET_CHAIN;
      REQUIRE(found->channels == (collnet ? 0 : wanted->channels));
      REQUIRE(std::pair(found->algorithm, found->protocol) == std::pair(wanted->algorithm, wanted->protocol));
    }
  }
}

TEST_CASE("of rules that cover each other a call looks at one for each algorithm and protocol") {
  std::vector<TunerRule> rules;
  for (int i = 0; i < 2000; ++i) {
    TunerRule rule;
    rule.collective = ncclFuncAllReduce;
    rule.most_bytes = largest - static_cast<uint64_t>(i % 5);
    rule.algorithm = i / NCCL_NUM_PROTOCOLS % NCCL_NUM_ALGORITHMS, rule.protocol = i % NCCL_NUM_PROTOCOLS;
    rules.push_back(rule);
  }
  const TunerIndex index(rules);
  const TunerIndex::Key key{ncclFuncAllReduce, TunerRule::any, TunerRule::any};
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1} << 40, largest}) {
    const auto found = index.fitting(key, bytes);
    CHECK(found.size() == kinds);
    CHECK(std::is_sorted(found.begin(), found.end()));
  }
  CHECK(index.fitting({ncclFuncAllReduce, 1, TunerRule::any}, 8).empty());
  CHECK(index.fitting({ncclFuncReduce, TunerRule::any, TunerRule::any}, 8).empty());
  CHECK(TunerIndex({}).fitting(key, 8).empty());
}
