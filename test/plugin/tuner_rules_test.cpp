#include "plugin/tuner_rules.h"

#include "test/catch.h"

using namespace gyre;
using namespace gyre::plugin;

namespace {

std::string rules_error(std::string_view text) {
  const auto rules = parse_tuner_rules(text, "rules.csv");
  return rules ? "" : rules.error().what;
}

}  // namespace

TEST_CASE("a rule is read with all of its columns, and with 8 or 9 of them") {
  const auto rules = parse_tuner_rules(
      "allreduce,0,65536,tree,ll,4,2,16,1,0\n"
      "broadcast,65537,18446744073709551615,ring,simple,-1,-1,-1,3\n"
      "reducescatter,1,1,nvls_tree,ll128,0,-1,8",
      "rules.csv");
  REQUIRE(rules);
  REQUIRE(rules->size() == 3);
  const TunerRule& first = (*rules)[0];
  CHECK(first.collective == ncclFuncAllReduce);
  CHECK(first.least_bytes == 0);
  CHECK(first.most_bytes == 65536);
  CHECK(first.algorithm == NCCL_ALGO_TREE);
  CHECK(first.protocol == NCCL_PROTO_LL);
  CHECK(first.channels == 4);
  CHECK(first.nodes == 2);
  CHECK(first.ranks == 16);
  CHECK(first.operations == 1);
  CHECK(first.registered == 0);
  const TunerRule& second = (*rules)[1];
  CHECK(second.collective == ncclFuncBroadcast);
  CHECK(second.most_bytes == UINT64_MAX);
  CHECK(second.algorithm == NCCL_ALGO_RING);
  CHECK(second.protocol == NCCL_PROTO_SIMPLE);
  CHECK(second.channels == 0);
  CHECK(second.nodes == TunerRule::any);
  CHECK(second.ranks == TunerRule::any);
  CHECK(second.operations == 3);
  CHECK(second.registered == TunerRule::any);
  const TunerRule& third = (*rules)[2];
  CHECK(third.collective == ncclFuncReduceScatter);
  CHECK(third.algorithm == NCCL_ALGO_NVLS_TREE);
  CHECK(third.protocol == NCCL_PROTO_LL128);
  CHECK(third.channels == 0);
  CHECK(third.ranks == 8);
  CHECK(third.operations == TunerRule::any);
}

TEST_CASE("comments, empty lines, a header, blanks and the line ends of other systems are passed over") {
  const auto rules = parse_tuner_rules(
      "\xef\xbb\xbf# what was measured\r\n"
      "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\r\n"
      "\r\n"
      "  \t\n"
      "   # and more\n"
      "\tallgather , 0 ,4294967295,  pat , simple,-1,\t-1 , -1 \r\n"
      "reduce,0,1,collnet_chain,simple,1,-1,-1\r\n"
      "reduce,0,1,collnet_direct,simple,1,-1,-1,-1,-1",
      "rules.csv");
  REQUIRE(rules);
  REQUIRE(rules->size() == 3);
  CHECK((*rules)[0].collective == ncclFuncAllGather);
  CHECK((*rules)[0].algorithm == NCCL_ALGO_PAT);
  CHECK((*rules)[1].collective == ncclFuncReduce);
  CHECK((*rules)[1].algorithm == NCCL_ALGO_COLLNET_CHAIN);
  CHECK((*rules)[2].algorithm == NCCL_ALGO_COLLNET_DIRECT);
  CHECK(parse_tuner_rules("", "rules.csv")->empty());
}

TEST_CASE("a wrong field is an error that says where it is and what is right") {
  const std::string good = "allreduce,0,8,ring,ll,-1,-1,-1\n\n";
  CHECK(
      rules_error(good + "allreduce,0,8, rng,ll,-1,-1,-1") ==
      "rules.csv:3:16: algorithm is \"rng\", must be one of tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat; perhaps ring");
  CHECK(rules_error("AllReduce,0,8,ring,ll,-1,-1,-1")
            .starts_with("rules.csv:1:1: collective_type is \"AllReduce\", must be one of broadcast, "));
  CHECK(rules_error("reduce,0,8,ring,ll64,-1,-1,-1").starts_with("rules.csv:1:17: protocol is \"ll64\", must be one of ll, ll128, simple"));
  CHECK(rules_error("reduce,-1,8,ring,ll,-1,-1,-1") == "rules.csv:1:8: min_bytes is \"-1\", must be a number of bytes");
  CHECK(rules_error("reduce,0,18446744073709551616,ring,ll,-1,-1,-1") ==
        "rules.csv:1:10: max_bytes is \"18446744073709551616\", must be a number of bytes");
  CHECK(rules_error("reduce,9,8,ring,ll,-1,-1,-1") == "rules.csv:1:10: max_bytes 8 is less than min_bytes 9");
  CHECK(rules_error("reduce,0,8,ring,ll,-2,-1,-1") == "rules.csv:1:20: channels is \"-2\", must be -1, or a number up to 64");
  CHECK(rules_error("reduce,0,8,ring,ll,65,-1,-1") == "rules.csv:1:20: channels is \"65\", must be -1, or a number up to 64");
  CHECK(rules_error("reduce,0,8,ring,ll,64,-1,-1").empty());
  CHECK(rules_error("reduce,0,8,ring,ll,1,2147483648,-1").starts_with("rules.csv:1:22: nNodes is \"2147483648\""));
  CHECK(rules_error("reduce,0,8,ring,ll,1,two,-1").starts_with("rules.csv:1:22: nNodes is \"two\""));
  CHECK(rules_error("reduce,0,8,ring,ll,1,2,").starts_with("rules.csv:1:24: nRanks is \"\""));
  CHECK(rules_error("reduce,0,8,ring,ll,1,2,8,x").starts_with("rules.csv:1:26: numPipeOps is \"x\""));
  CHECK(rules_error("reduce,0,8,ring,ll,1,2,8,1,2") == "rules.csv:1:28: regBuff is \"2\", must be -1, or a number up to 1");
  CHECK(rules_error("reduce,0,8,ring,ll,1,2").starts_with("rules.csv:1:22: 7 fields, must be 8 to 10: collective_type,min_bytes,"));
  CHECK(rules_error("reduce,0,8,ring,ll,1,2,8,1,0,5").starts_with("rules.csv:1:30: 11 fields, must be 8 to 10: "));
  CHECK(rules_error("reduce").starts_with("rules.csv:1:1: 1 fields"));
  CHECK(rules_error(std::string("\0\xff,,,,,,,", 9)).starts_with("rules.csv:1:1: collective_type is \"??\", must be"));
  CHECK(rules_error(std::string(1000, 'x') + ",,,,,,,").starts_with("rules.csv:1:1: collective_type is \"" + std::string(40, 'x') + "…\""));
  CHECK(rules_error("# by an old editor\rreduce,0,8,ring,ll,1,2,8\r") ==
        "rules.csv:1:19: a carriage return in mid line; lines end with a newline");
}
