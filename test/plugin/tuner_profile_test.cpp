#include "plugin/tuner_profile.h"

#include <fmt/format.h>

#include "base/version.h"
#include "plugin/tuner.h"
#include "test/catch.h"

using namespace gyre;
using namespace gyre::plugin;

namespace {

std::string profile_of(std::string_view jobs, std::string_view made_by = profile_version) {
  return fmt::format(R"({{"nccl":{{"machine":"m","version":"{}","date":"today","origin":"a test","jobs":[{}]}}}})", made_by, jobs);
}

std::string job(int per_node, int nodes, std::string_view choices) {
  return fmt::format(R"({{"ranks_per_node":{},"nodes":{},"choices":{{{}}}}})", per_node, nodes, choices);
}

std::string profile_error(std::string_view text) {
  const auto rules = parse_tuner_profile(text, "profile.json");
  return rules ? "" : rules.error().what;
}
std::string error_of_choices(std::string_view choices) { return profile_error(profile_of(job(8, 2, choices))); }

std::vector<TunerRule> rules_in(std::string_view jobs) {
  auto rules = parse_tuner_profile(profile_of(jobs), "profile.json");
  REQUIRE(rules);
  return *rules;
}

/// Algorithm and protocol, as "1/2"; what is not available is ring/simple.
std::string chosen(const Tuner& tuner, ncclFunc_t collective, uint64_t bytes) {
  std::vector<float> costs(size_t{NCCL_NUM_ALGORITHMS} * NCCL_NUM_PROTOCOLS, 5.f);
  costs[size_t{NCCL_ALGO_RING} * NCCL_NUM_PROTOCOLS + NCCL_PROTO_SIMPLE] = NCCL_ALGO_PROTO_IGNORE;
  const TunerRule* rule = tuner.choose({collective, bytes, 3, 1}, {costs.data(), NCCL_NUM_ALGORITHMS, NCCL_NUM_PROTOCOLS});
  if (rule == nullptr) return "NCCL's own";
  CHECK(rule->channels == 0);
  return fmt::format("{}/{}", rule->algorithm, rule->protocol);
}

}  // namespace

TEST_CASE("a choice of a profile's holds from its number of bytes to where the next one begins, the last to any") {
  const auto rules = rules_in(job(8, 2, R"("all_reduce":[[0,"tree/ll"],[8,"nvls_tree/ll128"],[9,"ring/simple"],[1099511627776,"ring/ll"]],
    "broadcast":[[0,"ring/ll128"]])"));
  CHECK(rules.size() == 5);
  const Tuner tuner(rules, 16, 2);
  CHECK(chosen(tuner, ncclFuncAllReduce, 0) == "0/0");
  CHECK(chosen(tuner, ncclFuncAllReduce, 7) == "0/0");
  CHECK(chosen(tuner, ncclFuncAllReduce, 8) == "5/1");
  CHECK(chosen(tuner, ncclFuncAllReduce, 9) == "NCCL's own");  // not available: no other's turn
  CHECK(chosen(tuner, ncclFuncAllReduce, (uint64_t{1} << 40) - 1) == "NCCL's own");
  CHECK(chosen(tuner, ncclFuncAllReduce, uint64_t{1} << 40) == "1/0");
  CHECK(chosen(tuner, ncclFuncAllReduce, UINT64_MAX) == "1/0");
  CHECK(chosen(tuner, ncclFuncBroadcast, 0) == "1/1");
  CHECK(chosen(tuner, ncclFuncBroadcast, UINT64_MAX) == "1/1");
  CHECK(chosen(tuner, ncclFuncReduce, 8) == "NCCL's own");
  CHECK(rules_in("").empty());
  CHECK(rules_in(job(8, 2, "")).empty());
}

TEST_CASE("a choice of a profile's may be NCCL's own, anywhere in the list") {
  const Tuner tuner(rules_in(job(8, 2, R"("all_reduce":[[0,"nccl"],[8,"tree/ll"],[16,"nccl"],[32,"nccl"],[64,"ring/ll"],[128,"nccl"]],
    "reduce":[[0,"nccl"]])")),
                    16, 2);
  CHECK(tuner.rules() == 2);
  for (const auto& [bytes, choice] : {std::pair{0, "NCCL's own"},
                                      {7, "NCCL's own"},
                                      {8, "0/0"},
                                      {15, "0/0"},
                                      {16, "NCCL's own"},
                                      {63, "NCCL's own"},
                                      {64, "1/0"},
                                      {127, "1/0"},
                                      {128, "NCCL's own"}})
    CHECK(chosen(tuner, ncclFuncAllReduce, static_cast<uint64_t>(bytes)) == choice);
  CHECK(chosen(tuner, ncclFuncReduce, 8) == "NCCL's own");
  const auto none = rules_in(job(8, 2, R"("reduce":[[0,"nccl"],[8,"nccl"]],"all_reduce":[[0,"nccl"]])"));
  for (const int64_t nodes : {1, 2, 3}) {
    const Tuner nobody(none, 8 * nodes, nodes);
    CHECK(nobody.rules() == 0);
    CHECK(chosen(nobody, ncclFuncReduce, 8) == "NCCL's own");
    CHECK(all_nccls_own(none, 8 * nodes, nodes) == (nodes > 1));
  }
  CHECK_FALSE(all_nccls_own(rules_in(job(8, 2, R"("reduce":[[0,"nccl"]],"broadcast":[[0,"ring/ll"]])")), 16, 2));
  CHECK(error_of_choices(R"("reduce":[[0,"nccl"],[0,"tree/ll"]])").ends_with("[1] = [0,\"tree/ll\"]: must begin after the one before it"));
}

TEST_CASE("a choice of a profile's may be gyre, which the tuner leaves to NCCL") {
  const auto rules = rules_in(job(8, 2, R"("all_reduce":[[0,"gyre"],[8,"tree/ll"],[16,"gyre"],[32,"nccl"],[64,"gyre"]],
    "broadcast":[[0,"nccl"],[4,"gyre"]])") +
                              "," + job(4, 1, R"("reduce":[[0,"gyre"],[8,"nccl"]])"));
  const Tuner tuner(rules, 16, 2);
  CHECK(tuner.rules() == 1);
  for (const auto& [bytes, choice] : {std::pair{0, "NCCL's own"}, {7, "NCCL's own"}, {8, "0/0"}, {16, "NCCL's own"}, {64, "NCCL's own"}})
    CHECK(chosen(tuner, ncclFuncAllReduce, static_cast<uint64_t>(bytes)) == choice);
  CHECK_FALSE(all_nccls_own(rules, 16, 2));
  CHECK(all_nccls_own(rules, 4, 1));
  const auto of = [&](int64_t ranks, int64_t nodes) {
    std::string all;
    for (const TunerRule& rule : rules_beside(rules, ranks, nodes))
      all +=
          fmt::format("{}:{}-{} ", rule.collective, rule.least_bytes, rule.most_bytes == UINT64_MAX ? "" : std::to_string(rule.most_bytes));
    return all;
  };
  CHECK(of(16, 2) == "4:0-7 4:16-31 4:64- 0:4- ");
  CHECK(of(24, 3).empty());  // not measured
  CHECK(of(4, 1) == "1:0-7 ");
  CHECK(of(8, 1).empty());
  CHECK(of(8, 2).empty());
}

TEST_CASE("behind gyre a choice of a profile's may have what NCCL runs where gyre does not") {
  const auto rules = rules_in(job(8, 2, R"("all_reduce":[[0,"gyre","tree/ll"],[8,"gyre"],[16,"gyre","nccl"],[32,"gyre","ring/ll128"]])"));
  const Tuner tuner(rules, 16, 2);
  CHECK(tuner.rules() == 2);
  for (const auto& [bytes, choice] : {std::pair{0, "0/0"}, {7, "0/0"}, {8, "NCCL's own"}, {16, "NCCL's own"}, {32, "1/1"}})
    CHECK(chosen(tuner, ncclFuncAllReduce, static_cast<uint64_t>(bytes)) == choice);
  CHECK(chosen(Tuner(rules, 24, 3), ncclFuncAllReduce, 7) == "0/0");  // which holds for more nodes, though gyre's choice does not
  CHECK(rules_beside(rules, 16, 2).size() == 4);
  CHECK(rules_beside(rules, 24, 3).empty());
}

TEST_CASE("how choices were measured is for people, and of choices only") {
  const auto measured = [](std::string_view how) {
    return profile_error(
        profile_of(fmt::format(R"({{"ranks_per_node":8,"nodes":2,"choices":{{"reduce":[[0,"ring/ll"]]}},"measured":{}}})", how)));
  };
  CHECK(measured("{}").empty());
  CHECK(measured(R"({"reduce":{"command":"mpirun","anything":[7]}})").empty());
  for (const char* odd : {"7", "[]", R"({"x":{"nccl":1}})", R"({"8":3})", R"({"8":{"nccl":"1"}})", R"({"-8":{}})"})
    CHECK(measured(fmt::format(R"({{"reduce":{{"us":{}}}}})", odd)).empty());
  CHECK(measured("7") == "profile.json: nccl.jobs[0].measured = 7: must be an object");
  CHECK(measured(R"({"reduce":{},"broadcast":{}})") == "profile.json: nccl.jobs[0].measured.broadcast = {}: has no choices");
}

TEST_CASE("a choice has the times that were measured at its sizes, the least first") {
  const auto rules = rules_in(R"({"ranks_per_node":8,"nodes":2,"choices":{"all_reduce":[[0,"tree/ll"],[512,"nccl"],[4096,"ring/ll"]]},
    "measured":{"all_reduce":{"us":{"1024":{"nccl":3},"256":{"nccl":12,"tree/ll":8.04,"gyre":9},"4096":{"nccl":"9"}}}}})");
  REQUIRE(rules.size() == 2);
  REQUIRE(rules[0].measured.size() == 1);
  CHECK(rules[0].measured[0].bytes == 256);
  CHECK(rules[0].measured[0].words == "tree/ll 8.0 us, gyre 9.0 us, NCCL's own choice 12.0 us");
  CHECK(rules[1].measured.empty());
}

TEST_CASE("each collective of a profile's is NCCL's of that name") {
  const auto rules = rules_in(job(8, 1, R"("all_reduce":[[0,"tree/ll"]],"all_gather":[[0,"ring/ll"]],"reduce_scatter":[[0,"pat/simple"]],
    "broadcast":[[0,"ring/ll128"]],"reduce":[[0,"nvls/simple"]])"));
  const Tuner tuner(rules, 8, 1);
  CHECK(chosen(tuner, ncclFuncAllReduce, 1) == "0/0");
  CHECK(chosen(tuner, ncclFuncAllGather, 1) == "1/0");
  CHECK(chosen(tuner, ncclFuncReduceScatter, 1) == "6/2");
  CHECK(chosen(tuner, ncclFuncBroadcast, 1) == "1/1");
  CHECK(chosen(tuner, ncclFuncReduce, 1) == "4/2");
}

TEST_CASE("a communicator's job in a profile has its ranks per node, and the most nodes that are not more than its own") {
  const auto of = [](int per_node, int nodes, int algorithm) {  // algorithms tell which job it was
    constexpr std::array<const char*, 7> names{"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
    return job(per_node, nodes, fmt::format(R"("reduce":[[0,"{}/ll"]])", names.at(static_cast<size_t>(algorithm))));
  };
  const auto rules = rules_in(of(8, 4, 4) + "," + of(8, 1, 1) + "," + of(4, 3, 3) + "," + of(8, 2, 2) + "," + of(2, 1, 5));  // in any order
  const auto chosen_for = [&](int64_t ranks, int64_t nodes) { return chosen(Tuner(rules, ranks, nodes), ncclFuncReduce, 8); };
  CHECK(chosen_for(8, 1) == "1/0");
  CHECK(chosen_for(16, 2) == "2/0");
  CHECK(chosen_for(24, 3) == "2/0");
  CHECK(chosen_for(32, 4) == "4/0");
  CHECK(chosen_for(40, 5) == "4/0");
  CHECK(chosen_for(64, 8) == "4/0");
  CHECK(chosen_for(12, 3) == "3/0");
  CHECK(chosen_for(24, 6) == "3/0");
  CHECK(chosen_for(2, 1) == "5/0");
  for (const auto& [ranks, nodes, why] :
       {std::tuple{17, 2, "they are not as many on each node"},
        {8, 0, "they are not as many on each node"},
        {TunerRule::any, TunerRule::any, "they are not as many on each node"},
        {16, 1, "it has nothing for 16 ranks on a node"},
        {3, 3, "it has nothing for 1 ranks on a node"},
        {72, 9, "what it has for 8 ranks on a node goes up to 8 nodes"},
        {100'000, 12'500, "what it has for 8 ranks on a node goes up to 8 nodes"},
        {28, 7, "what it has for 4 ranks on a node goes up to 6 nodes"},
        {4, 1, "with 4 ranks on a node it has choices only for other numbers of nodes"},
        {8, 2, "with 4 ranks on a node it has choices only for other numbers of nodes"},
        {4, 2, "with 2 ranks on a node it has choices only for other numbers of nodes"}}) {  // what is known of one node says nothing of a
                                                                                             // network
    INFO(ranks << " ranks on " << nodes << " nodes");
    CHECK(Tuner(rules, ranks, nodes).rules() == 0);
    CHECK(why_none(rules, ranks, nodes) == why);
  }
}

TEST_CASE("what was measured of the job with the most nodes is no choice for more") {
  const auto measured = [](int nodes) {
    return fmt::format(R"({{"ranks_per_node":8,"nodes":{},"choices":{{"reduce":[[0,"ring/ll"]],"broadcast":[[0,"ring/ll128"]]}},
      "measured":{{"reduce":{{"nccl":"2.28.9"}}}}}})",
                       nodes);
  };
  const auto rules = rules_in(measured(2) + "," + measured(8));
  const auto chosen_on = [&](ncclFunc_t collective, int64_t nodes) { return chosen(Tuner(rules, 8 * nodes, nodes), collective, 8); };
  for (const int64_t nodes : {2, 3, 4, 8}) CHECK(chosen_on(ncclFuncReduce, nodes) == "1/0");
  for (const int64_t nodes : {1, 5, 7, 9, 16}) CHECK(chosen_on(ncclFuncReduce, nodes) == "NCCL's own");
  for (const int64_t nodes : {2, 4, 8, 9, 16}) CHECK(chosen_on(ncclFuncBroadcast, nodes) == "1/1");
  for (const int64_t nodes : {5, 7, 17}) CHECK(chosen_on(ncclFuncBroadcast, nodes) == "NCCL's own");
  CHECK(why_none(rules, 136, 17) == "what it has for 8 ranks on a node goes up to 16 nodes");
  CHECK(why_none(rules, 40, 5) == "with 8 ranks on a node it has choices only for other numbers of nodes");
}

TEST_CASE("a profile is refused by another version of gyre or of its choices, and taken by any machine") {
  for (const std::string made_by : {"0.0.1", "0.1.0", "0.1.0+0"}) {
    CHECK(profile_error(profile_of("", made_by)) ==
          fmt::format("profile.json: nccl.version = \"{}\": made by another gyre, and this is {}; "
                      "gyre-perf tune_nccl or crossovers --profile makes it anew",
                      made_by, profile_version));
  }
  const std::string foreign = R"({"made_for":{"processor":"abacus","processors":1,"gyre":"0.0.1"},)" + profile_of("").substr(1);
  CHECK(profile_error(foreign).empty());
}

TEST_CASE("a profile that only says what things cost has no choices, and what is no profile is an error") {
  const auto costs = parse_tuner_profile(R"({"links":{},"ranks":{},"machines":{},"made_for":{"gyre":"0.0.1"}})", "profile.json");
  REQUIRE(costs);
  CHECK(costs->empty());
  CHECK(profile_error(R"({"links":{},"ranks":{},"machines":{},"nccl":7})") == "profile.json: nccl = 7: must be an object");
  for (const char* none : {"{}", R"({"nccI":{}})", R"({"links":{},"ranks":{}})", R"({"links":{},"machines":{}})"})
    CHECK(profile_error(none) == "profile.json: nccl: is missing; gyre-perf tune_nccl or crossovers --profile adds it");
}

TEST_CASE("a wrong thing in a profile is an error with its file, key and value") {
  CHECK(profile_error("{") == "profile.json: is not JSON: line 1, column 2");
  CHECK(profile_error(R"({"nccl":[]})") == "profile.json: nccl = []: must be an object");
  CHECK(profile_error(R"({"nccl":{}})") == "profile.json: nccl.version: is missing");
  CHECK(profile_error(R"({"nccl":{"version":1}})") == "profile.json: nccl.version = 1: must be a text");
  std::string text = profile_of("");
  CHECK(profile_error(text).empty());
  CHECK(profile_error(text.replace(text.find("origin"), 6, "origen")) ==
        R"(profile.json: nccl.origen = "a test": unknown; known are date, jobs, machine, origin, version)");
  CHECK(profile_error(profile_of("7")) == "profile.json: nccl.jobs[0] = 7: must be an object");
  CHECK(profile_error(profile_of(job(8, 1, "") + R"(,{"nodes":2,"choices":{}})")) ==
        "profile.json: nccl.jobs[1].ranks_per_node: is missing");
  CHECK(profile_error(profile_of(job(8, -1, ""))) == "profile.json: nccl.jobs[0].nodes = -1: must be from 0 to 1048576");
  CHECK(profile_error(profile_of(job(0, 1, ""))) == "profile.json: nccl.jobs[0].ranks_per_node = 0: must be 1 or more");
  CHECK(profile_error(profile_of(job(8, 1, "") + "," + job(8, 2, "") + "," + job(8, 1, ""))) ==
        "profile.json: nccl.jobs[2].nodes = 1: there is another job of as many, with 8 ranks on each");
  CHECK(profile_error(profile_of(R"({"ranks_per_node":8,"nodes":1,"choices":0})")) ==
        "profile.json: nccl.jobs[0].choices = 0: must be an object");
  CHECK(error_of_choices(R"("allreduce":[])") ==
        "profile.json: nccl.jobs[0].choices.allreduce = []: unknown; known are all_gather, "
        "all_reduce, broadcast, reduce, reduce_scatter");
  CHECK(error_of_choices(R"("reduce":[[0,"ring/ll"]],"reduce":[[0,"ring/simple"]])") ==
        R"(profile.json: "reduce" stands twice in an object)");
}

TEST_CASE("a wrong choice in a profile is an error with its place in the list") {
  const auto error_of = [](std::string_view list) {
    const std::string what = error_of_choices(fmt::format(R"("reduce":{})", list));
    const std::string_view before = "profile.json: nccl.jobs[0].choices.reduce";
    CHECK(what.starts_with(before));
    return what.substr(std::min(before.size(), what.size()));
  };
  const std::string shape =
      ": must be [a whole number of bytes, \"algorithm/protocol\"], or [a whole number of bytes, \"gyre\", \"algorithm/protocol\"]";
  for (const char* wrong : {"0", "[]", "null", R"({"0":"ring/ll"})"})
    CHECK(error_of(wrong) == fmt::format(" = {}: must be a list of choices", wrong));
  for (const char* wrong : {"0", "[]", "[0]", R"([-1,"ring/ll"])", R"([0.5,"ring/ll"])", R"([2.0,"ring/ll"])", R"(["0","ring/ll"])",
                            "[0,1]", R"([0,"ring/ll",1])", R"([0,"ring/ll","tree/ll"])", R"([0,"nccl","tree/ll"])", R"([0,"gyre",1])",
                            R"([0,"gyre",null])", R"([0,"gyre","tree/ll","ring/ll"])", R"([-1,"gyre","tree/ll"])", R"(["gyre","tree/ll"])"})
    CHECK(error_of(fmt::format(R"([[0,"tree/ll"],{}])", wrong)) == fmt::format("[1] = {}{}", wrong, shape));
  CHECK(error_of(R"([[0,"tree/ll"],[18446744073709551616,"ring/ll"]])").ends_with(shape));
  CHECK(error_of(R"([[1,"ring/ll"]])") == "[0] = [1,\"ring/ll\"]: must begin at 0 bytes: it is the first");
  CHECK(error_of(R"([[0,"ring/ll"],[8,"tree/ll"],[8,"ring/ll"]])") == "[2] = [8,\"ring/ll\"]: must begin after the one before it");
  CHECK(error_of(R"([[0,"ring/ll"],[0,"tree/ll"]])") == "[1] = [0,\"tree/ll\"]: must begin after the one before it");
  const std::string nccls =
      "must be one of tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat, a slash, and one of ll, ll128, simple, or nccl for "
      "its own choice";
  const std::string words = nccls + ", or gyre for gyre beside it";
  CHECK(error_of(R"([[0,"rng/ll"]])") == "[0] = [0,\"rng/ll\"]: " + words + "; perhaps ring/ll");
  CHECK(error_of(R"([[0,"ring/ll12"]])") == "[0] = [0,\"ring/ll12\"]: " + words + "; perhaps ring/ll128");
  CHECK(error_of(R"([[0,"Gyre"]])").starts_with("[0] = [0,\"Gyre\"]: " + words));
  CHECK(error_of(R"([[0,"gyre/ll"]])").starts_with("[0] = [0,\"gyre/ll\"]: " + words));
  CHECK(error_of(R"([[0,"ring"]])").starts_with("[0] = [0,\"ring\"]: " + words));
  CHECK(error_of(R"([[0,"ring/"]])").starts_with("[0] = [0,\"ring/\"]: " + words));
  CHECK(error_of(R"([[0,"/ll"]])").starts_with("[0] = [0,\"/ll\"]: " + words));
  CHECK(error_of(R"([[0,""]])") == "[0] = [0,\"\"]: " + words);
  CHECK(error_of(R"([[0,"ring/ll/ll"]])").starts_with("[0] = [0,\"ring/ll/ll\"]: " + words));
  CHECK(error_of(R"([[0,"gyre","rng/ll"]])") == "[0] = [0,\"gyre\",\"rng/ll\"]: what is behind gyre " + nccls + "; perhaps ring/ll");
  CHECK(error_of(R"([[0,"gyre","gyre"]])") == "[0] = [0,\"gyre\",\"gyre\"]: what is behind gyre " + nccls);
  CHECK(error_of(R"([[0,"gyre",""]])") == "[0] = [0,\"gyre\",\"\"]: what is behind gyre " + nccls);
}
