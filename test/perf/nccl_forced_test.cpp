#include "perf/nccl_forced.h"

#include <algorithm>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::perf;

using Texts = std::vector<std::string>;

TEST_CASE("candidates are what NCCL has for a collective on some machine, after its own choice") {
  CHECK(nccl_candidates(Collective::all_reduce) == Texts{"nccl", "tree/ll", "tree/ll128", "tree/simple", "ring/ll", "ring/ll128",
                                                         "ring/simple", "collnet_direct/simple", "collnet_chain/simple", "nvls/simple",
                                                         "nvls_tree/simple"});
  CHECK(nccl_candidates(Collective::broadcast) == Texts{"nccl", "ring/ll", "ring/ll128", "ring/simple"});
  CHECK(nccl_candidates(Collective::reduce).size() == 4);
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter})
    CHECK(nccl_candidates(collective) ==
          Texts{"nccl", "ring/ll", "ring/ll128", "ring/simple", "collnet_direct/simple", "nvls/simple", "pat/simple"});
}

TEST_CASE("the environment forces a choice, without a tuner, and asks what ran") {
  const Variables own = nccl_variables(nccls_own, false);
  for (const char* name : {"GYRE_TUNER_FILE", "GYRE_COLLECTIVES", "NCCL_ALGO", "NCCL_PROTO", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"}) {
    REQUIRE(own.contains(name));
    CHECK_FALSE(own.at(name).has_value());
  }
  CHECK(own.at("NCCL_TUNER_PLUGIN") == "none");
  CHECK(own.at("NCCL_DEBUG") == "WARN");
  const Variables forced = nccl_variables("nvls_tree/simple", true);
  CHECK(forced.at("NCCL_ALGO") == "nvlstree");
  CHECK(forced.at("NCCL_PROTO") == "simple");
  CHECK(forced.at("NCCL_DEBUG") == "INFO");
  CHECK(forced.at("NCCL_DEBUG_SUBSYS") == "TUNING");
}

TEST_CASE("a word {env} of a command is env with what is set") {
  CHECK(with_env({"mpirun", "{env}", "./all_reduce_perf"}, {{"A", "1"}, {"B", std::nullopt}, {"C", "d e"}}) ==
        Texts{"mpirun", "env", "-u", "B", "A=1", "C=d e", "./all_reduce_perf"});
}

TEST_CASE("{env} in a word of more is an error") {
  CHECK(check_env({"mpirun", "{env}", "{env}", "./all_reduce_perf", "{ENV}"}));
  for (const char* word : {"x{env}", "{env} ./all_reduce_perf", "A={env}"}) {
    const Status status = check_env({"sh", "-c", word});
    REQUIRE_FALSE(status);
    CHECK(status.error().what.starts_with(word + std::string(": {env} must be a word of its own")));
  }
}

TEST_CASE("what NCCL says that it ran is found by any of its names, of each collective") {
  const std::string log =
      "host:1:2 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n"
      "           8             2     float     sum      -1host:1:2 [0] NCCL INFO AllReduce: 64 Bytes -> Algo NVLS_TREE proto SIMPLE "
      "channel"
      "{Lo..Hi}={0..15} cgaClusterSize 4\n"
      "host:1:2 [0] NCCL INFO AllReduce: 64 Bytes -> Algo CollNetDirect proto LL128 channel{Lo..Hi}={0..1}\r\n"
      "host:1:2 [0] NCCL INFO AllGather: 64 Bytes -> Algo PAT proto SIMPLE channel{Lo..Hi}={0..1}\n"
      "host:1:2 [0] NCCL INFO AllReduce [Symmetric]: 64 Bytes -> Kernel x\n"
      "NCCL version 2.28.9+cuda13.0\n";
  CHECK(nccl_choices_in(log) ==
        std::map<std::string, std::set<std::string>>{{"all_reduce", {"collnet_direct/ll128", "nvls_tree/simple", "ring/ll"}},
                                                     {"all_gather", {"pat/simple"}}});
  CHECK(nccl_choices_in("").empty());
  CHECK(nccl_version_in(log) == "2.28.9+cuda13.0");
  CHECK(nccl_version_in("") == "unknown");
  CHECK(nccl_warning_in("h:1:2 [0] init.cc:7 NCCL WARN first\nh:1:2 [0] enqueue.cc:9 NCCL WARN Error : none available\r\nmore") ==
        "Error : none available");
  CHECK(nccl_warning_in(log).empty());
}
