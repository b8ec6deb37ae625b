#include "plugin/tuner_abi.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <tuple>
#include <vector>

#include "base/processor.h"
#include "base/version.h"
#include "test/catch.h"
#include "test/folder.h"
#include "test/plugin/rim.h"

using namespace gyre;
using namespace gyre::plugin;
using gyre::test::Folder;

namespace {

/// GYRE_TUNER_FILE is a file with this text, for the life of a test.
struct WrittenRules {
  explicit WrittenRules(const std::string& text) {
    std::ofstream(path) << text;
    ::setenv("GYRE_TUNER_FILE", path.c_str(), 1);
  }
  WrittenRules(const WrittenRules&) = delete;
  WrittenRules& operator=(const WrittenRules&) = delete;
  ~WrittenRules() { ::unsetenv("GYRE_TUNER_FILE"); }

  Folder folder;
  std::string path = folder / "rules.csv";
};

/// Inits find GYRE_EXPLAIN=1.
struct Explained {
  Explained() { ::setenv("GYRE_EXPLAIN", "1", 1); }
  Explained(const Explained&) = delete;
  Explained& operator=(const Explained&) = delete;
  ~Explained() { ::unsetenv("GYRE_EXPLAIN"); }
};

std::vector<std::string> texts() {
  std::vector<std::string> lines;
  for (const LoggedLine& line : logged()) lines.push_back(line.text);
  return lines;
}

struct TunerAnswer {
  std::vector<float> costs = std::vector<float>(size_t{NCCL_NUM_ALGORITHMS} * NCCL_NUM_PROTOCOLS, 5.f);
  int channels = 0;

  float** table() { return reinterpret_cast<float**>(costs.data()); }
  float& cost(int algorithm, int protocol) { return costs[static_cast<size_t>(algorithm * NCCL_NUM_PROTOCOLS + protocol)]; }
  /// Entries that are not as they were.
  size_t touched() const {
    return static_cast<size_t>(std::count_if(costs.begin(), costs.end(), [](float c) { return c != 5.f; }));
  }
};

constexpr const char* tree_then_ring =
    "allreduce,0,1024,ring,ll,7,-1,-1,3\n"
    "allreduce,0,1024,tree,ll,4,2,8\n"
    "allreduce,0,4096,ring,simple,-1,-1,-1\n"
    "allreduce,0,4096,ring,ll,6,-1,-1,-1,1\n"
    "broadcast,0,1,ring,ll128,2,-1,-1\n"
    "broadcast,0,1,tree,ll,3,-1,-1\n"
    "broadcast,0,1,ring,ll,5,-1,-1\n";

}  // namespace

// NCCL's, as a process has it that the tuner is asked in.
extern "C" __attribute__((visibility("default"))) ncclResult_t ncclGetVersion(int* out) {
  *out = 22809;
  return ncclSuccess;
}

TEST_CASE("tuner tables are named gyre") {
  for (const char* name : {ncclTunerPlugin_v1.name, ncclTunerPlugin_v2.name, ncclTunerPlugin_v3.name, ncclTunerPlugin_v4.name,
                           ncclTunerPlugin_v5.name, ncclTunerPlugin_v6.name})
    CHECK(std::string(name) == "gyre");
  CHECK(ncclTunerPlugin_v6.getChunkSize == nullptr);
}

TEST_CASE("a chosen entry costs nothing, all others stay, and channels are set where a rule has a number") {
  const Rim rim;
  const WrittenRules file(tree_then_ring);
  void* context = rim.stale;
  REQUIRE(ncclTunerPlugin_v6.init(&context, 1, 8, 2, keep_line, nullptr, nullptr) == ncclSuccess);
  CHECK(logged().back().text == "NET/gyre: tuner: 7 of 7 rules in " + file.path + " are for 8 ranks on 2 nodes");
  const auto ask = [&](TunerAnswer& answer, ncclFunc_t collective, size_t bytes, int registered = 0) {
    return ncclTunerPlugin_v6.getCollInfo(context, collective, bytes, 1, answer.table(), NCCL_NUM_ALGORITHMS, NCCL_NUM_PROTOCOLS,
                                          registered, &answer.channels);
  };
  TunerAnswer small, large, none, ignored, registered;
  CHECK(ask(small, ncclFuncAllReduce, 1024) == ncclSuccess);
  CHECK(small.cost(NCCL_ALGO_TREE, NCCL_PROTO_LL) == 0);
  CHECK(small.touched() == 1);
  CHECK(small.channels == 4);
  CHECK(ask(large, ncclFuncAllReduce, 1025) == ncclSuccess);
  CHECK(large.cost(NCCL_ALGO_RING, NCCL_PROTO_SIMPLE) == 0);
  CHECK(large.touched() == 1);
  CHECK(large.channels == 0);
  CHECK(ask(none, ncclFuncAllReduce, 4097) == ncclSuccess);
  CHECK(none.touched() == 0);
  CHECK(none.channels == 0);
  ignored.cost(NCCL_ALGO_TREE, NCCL_PROTO_LL) = NCCL_ALGO_PROTO_IGNORE;
  CHECK(ask(ignored, ncclFuncAllReduce, 8) == ncclSuccess);
  CHECK(ignored.cost(NCCL_ALGO_TREE, NCCL_PROTO_LL) == NCCL_ALGO_PROTO_IGNORE);
  CHECK(ignored.cost(NCCL_ALGO_RING, NCCL_PROTO_SIMPLE) == 0);
  registered.cost(NCCL_ALGO_TREE, NCCL_PROTO_LL) = registered.cost(NCCL_ALGO_RING, NCCL_PROTO_SIMPLE) = NCCL_ALGO_PROTO_IGNORE;
  CHECK(ask(registered, ncclFuncAllReduce, 8, 1) == ncclSuccess);
  CHECK(registered.channels == 6);
  CHECK(ncclTunerPlugin_v6.finalize(context) == ncclSuccess);
}

TEST_CASE("what is chosen of each kind of call is explained once, and counted at the end") {
  const Rim rim;
  const WrittenRules file(tree_then_ring);
  const Explained explained;
  void* context = rim.stale;
  REQUIRE(ncclTunerPlugin_v6.init(&context, 1, 8, 2, keep_line, nullptr, nullptr) == ncclSuccess);
  logged().clear();
  for (const size_t bytes : {1024u, 1030u, 1500u, 5000u, 0u}) {
    TunerAnswer answer;
    std::ranges::fill(answer.costs, NCCL_ALGO_PROTO_IGNORE);
    answer.cost(NCCL_ALGO_TREE, NCCL_PROTO_LL) = 7.25f, answer.cost(NCCL_ALGO_RING, NCCL_PROTO_SIMPLE) = 6;
    CHECK(ncclTunerPlugin_v6.getCollInfo(context, ncclFuncAllReduce, bytes, 1, answer.table(), 7, 3, 0, &answer.channels) == ncclSuccess);
  }
  CHECK(ncclTunerPlugin_v6.finalize(context) == ncclSuccess);
  const std::string all = "NET/gyre: explain: all_reduce", prices = " bytes: ring/simple 6.0 us, tree/ll 7.2 us";
  CHECK(texts() == std::vector<std::string>{
                       all + ", 1024 to 2047 bytes: tree/ll on 4 channels, by " + file.path + "; NCCL's prices of 1024" + prices,
                       all + ", 1024 to 2047 bytes: ring/simple, by " + file.path + "; NCCL's prices of 1030" + prices,
                       all + ", 4096 to 8191 bytes: ring/simple, NCCL's own choice; NCCL's prices of 5000" + prices,
                       all + " of nothing: tree/ll on 4 channels, by " + file.path + "; NCCL's prices of 0" + prices,
                       all + " of nothing: tree/ll on 4 channels, by " + file.path + " 1 times",
                       all + ", 1024 to 2047 bytes: tree/ll on 4 channels, by " + file.path + " 1 times",
                       all + ", 1024 to 2047 bytes: ring/simple, by " + file.path + " 2 times",
                       all + ", 4096 to 8191 bytes: ring/simple, NCCL's own choice 1 times",
                   });
}

TEST_CASE("what was measured for a choice is told from NCCL's prices") {
  const Rim rim;
  const WrittenRules file(R"({"nccl":{"machine":"m","version":")" + std::string(profile_version) + R"(","date":"","origin":"","jobs":[
    {"ranks_per_node":4,"nodes":2,"choices":{"reduce":[[0,"ring/ll"]]},
     "measured":{"reduce":{"us":{"8":{"ring/ll":4.5,"nccl":9},"65536":{"ring/ll":40,"nccl":50}}}}}]}})");
  const Explained explained;
  void* context = rim.stale;
  REQUIRE(ncclTunerPlugin_v6.init(&context, 1, 8, 2, keep_line, nullptr, nullptr) == ncclSuccess);
  TunerAnswer answer;
  std::ranges::fill(answer.costs, NCCL_ALGO_PROTO_IGNORE);
  answer.cost(NCCL_ALGO_RING, NCCL_PROTO_LL) = 6;
  CHECK(ncclTunerPlugin_v6.getCollInfo(context, ncclFuncReduce, 1000, 1, answer.table(), 7, 3, 0, &answer.channels) == ncclSuccess);
  const std::string measured = "measured for it at 8 bytes: ring/ll 4.5 us, NCCL's own choice 9.0 us";
  CHECK(logged().back().text == "NET/gyre: explain: reduce, 512 to 1023 bytes: ring/ll, by " + file.path + "; " + measured +
                                    "; NCCL's prices of 1000 bytes: ring/ll 6.0 us");
  CHECK(ncclTunerPlugin_v6.finalize(context) == ncclSuccess);
}

TEST_CASE("choices that were measured on another machine are taken, with a warning that names both, once") {
  const Rim rim;
  const std::string here = models_of_host().front();
  for (const std::string& machine : {std::string("NVIDIA Abacus"), here, here + " MIG 1g.10gb"}) {
    const bool is_here = machine != "NVIDIA Abacus";
    const WrittenRules file(R"({"nccl":{"machine":"m","version":")" + std::string(profile_version) +
                            R"(","date":"","origin":"","jobs":[{"ranks_per_node":4,"nodes":2,"choices":{"reduce":[[0,"ring/ll"]]},
                            "measured":{"reduce":{"machine":")" +
                            machine + R"("}}}]}})");
    logged().clear();
    for (int communicator = 0; communicator < 2; ++communicator) {
      void* context = rim.stale;
      REQUIRE(ncclTunerPlugin_v6.init(&context, 1, 8, 2, keep_line, nullptr, nullptr) == ncclSuccess);
      TunerAnswer answer;
      CHECK(ncclTunerPlugin_v6.getCollInfo(context, ncclFuncReduce, 8, 1, answer.table(), 7, 3, 0, &answer.channels) == ncclSuccess);
      CHECK(answer.cost(NCCL_ALGO_RING, NCCL_PROTO_LL) == 0);
      CHECK(ncclTunerPlugin_v6.finalize(context) == ncclSuccess);
    }
    INFO(machine);
    CHECK(std::ranges::count(logged(), NCCL_LOG_WARN, &LoggedLine::level) == (is_here ? 0 : 1));
    const std::string warning = "NET/gyre: GYRE_TUNER_FILE=" + file.path +
                                ": has choices that were measured on NVIDIA Abacus, and this machine has " + here +
                                "; they are taken, since all ranks must choose alike";
    CHECK((std::ranges::count(texts(), warning) == 1) != is_here);
  }
}

TEST_CASE("choices that were measured with another NCCL are taken, with a warning that names both") {
  const Rim rim;
  for (const auto& [measured, warns] :
       {std::pair{"2.27.3+cuda12.9", true}, {"2.28.9+cuda13.0", false}, {"2.28.9", false}, {"unknown", false}}) {
    const WrittenRules file(R"({"nccl":{"machine":"m","version":")" + std::string(profile_version) +
                            R"(","date":"","origin":"","jobs":[{"ranks_per_node":4,"nodes":2,"choices":{"reduce":[[0,"ring/ll"]]},
                            "measured":{"reduce":{"nccl":")" +
                            measured + R"("}}}]}})");
    logged().clear();
    void* context = rim.stale;
    REQUIRE(ncclTunerPlugin_v6.init(&context, 1, 8, 2, keep_line, nullptr, nullptr) == ncclSuccess);
    CHECK(ncclTunerPlugin_v6.finalize(context) == ncclSuccess);
    const std::string warning =
        "NET/gyre: GYRE_TUNER_FILE=" + file.path +
        ": has choices that were measured with NCCL 2.27.3+cuda12.9, and this is NCCL 2.28.9; they are taken, since "
        "all ranks must choose alike";
    INFO(measured);
    CHECK((std::ranges::count(texts(), warning) == 1) == warns);
    CHECK(std::ranges::count(logged(), NCCL_LOG_WARN, &LoggedLine::level) == (warns ? 1 : 0));
    CHECK(texts().back() == "NET/gyre: tuner: 1 of 1 rules in " + file.path + " are for 8 ranks on 2 nodes");
  }
}

TEST_CASE("every version of the tuner chooses by the same rules, as far as it is told") {
  const Rim rim;
  const WrittenRules file(tree_then_ring);
  TunerAnswer answer, fused;
  void* context = rim.stale;
  SECTION("5") {
    REQUIRE(ncclTunerPlugin_v5.init(&context, 1, 8, 2, keep_line, nullptr, nullptr) == ncclSuccess);
    CHECK(ncclTunerPlugin_v5.getCollInfo(context, ncclFuncAllReduce, 8, 1, answer.table(), 7, 3, 0, &answer.channels) == ncclSuccess);
    CHECK(ncclTunerPlugin_v5.getCollInfo(context, ncclFuncAllReduce, 8, 3, fused.table(), 7, 3, 0, &fused.channels) == ncclSuccess);
    CHECK(ncclTunerPlugin_v5.finalize(context) == ncclSuccess);
  }
  SECTION("4") {
    REQUIRE(ncclTunerPlugin_v4.init(8, 2, keep_line, &context) == ncclSuccess);
    CHECK(ncclTunerPlugin_v4.getCollInfo(context, ncclFuncAllReduce, 8, 1, answer.table(), 7, 3, 0, &answer.channels) == ncclSuccess);
    CHECK(ncclTunerPlugin_v4.getCollInfo(context, ncclFuncAllReduce, 8, 3, fused.table(), 7, 3, 0, &fused.channels) == ncclSuccess);
    CHECK(ncclTunerPlugin_v4.destroy(context) == ncclSuccess);
  }
  SECTION("3") {
    REQUIRE(ncclTunerPlugin_v3.init(8, 2, keep_line, &context) == ncclSuccess);
    CHECK(ncclTunerPlugin_v3.getCollInfo(context, ncclFuncAllReduce, 8, 1, answer.table(), 6, 3, &answer.channels) == ncclSuccess);
    CHECK(ncclTunerPlugin_v3.getCollInfo(context, ncclFuncAllReduce, 8, 3, fused.table(), 6, 3, &fused.channels) == ncclSuccess);
    CHECK(ncclTunerPlugin_v3.destroy(context) == ncclSuccess);
  }
  CHECK(answer.cost(NCCL_ALGO_TREE, NCCL_PROTO_LL) == 0);
  CHECK(answer.touched() == 1);
  CHECK(answer.channels == 4);
  CHECK(fused.cost(NCCL_ALGO_RING, NCCL_PROTO_LL) == 0);
  CHECK(fused.touched() == 1);
  CHECK(fused.channels == 7);
}

TEST_CASE("before 2.22 rules choose what every communicator has, and nothing else") {
  const Rim rim;
  const WrittenRules file(tree_then_ring);
  void* context = rim.stale;
  REQUIRE(ncclTunerPlugin_v2.init(8, 2, keep_line, &context) == ncclSuccess);
  const auto ask = [&](ncclFunc_t collective, size_t bytes, int operations = 1) {
    int algorithm = NCCL_ALGO_UNDEF, protocol = NCCL_PROTO_UNDEF, channels = 0;
    CHECK(ncclTunerPlugin_v2.getCollInfo(context, collective, bytes, 0, 0, operations, &algorithm, &protocol, &channels) == ncclSuccess);
    return std::tuple(algorithm, protocol, channels);
  };
  CHECK(ask(ncclFuncAllReduce, 8) == std::tuple(NCCL_ALGO_TREE, NCCL_PROTO_LL, 4));
  CHECK(ask(ncclFuncAllReduce, 2000) == std::tuple(NCCL_ALGO_RING, NCCL_PROTO_SIMPLE, 0));
  CHECK(ask(ncclFuncAllReduce, 5000) == std::tuple(NCCL_ALGO_UNDEF, NCCL_PROTO_UNDEF, 0));
  CHECK(ask(ncclFuncAllReduce, 8, 3) == std::tuple(NCCL_ALGO_RING, NCCL_PROTO_LL, 7));
  CHECK(ask(ncclFuncBroadcast, 1) == std::tuple(NCCL_ALGO_RING, NCCL_PROTO_LL, 5));
  CHECK(ncclTunerPlugin_v2.destroy(context) == ncclSuccess);
}

TEST_CASE("2.19 and 2.20 do not say who asks: rules for any job choose, and what they chose is counted when nobody is left") {
  const Rim rim;
  const WrittenRules file(tree_then_ring);
  const auto ask = [&](size_t bytes, int operations = 1) {
    int algorithm = NCCL_ALGO_UNDEF, protocol = NCCL_PROTO_UNDEF, channels = 0;
    CHECK(ncclTunerPlugin_v1.getCollInfo(ncclFuncAllReduce, bytes, 0, 0, operations, &algorithm, &protocol, &channels) == ncclSuccess);
    return std::tuple(algorithm, protocol, channels);
  };
  CHECK(ask(8) == std::tuple(NCCL_ALGO_UNDEF, NCCL_PROTO_UNDEF, 0));  // no init yet
  CHECK(ncclTunerPlugin_v1.destroy() == ncclSuccess);                 // nor a log to end
  const Explained explained;
  REQUIRE(ncclTunerPlugin_v1.init(8, 2, keep_line) == ncclSuccess);
  REQUIRE(ncclTunerPlugin_v1.init(4, 1, keep_line) == ncclSuccess);
  logged().clear();
  CHECK(ask(8) == std::tuple(NCCL_ALGO_RING, NCCL_PROTO_SIMPLE, 0));
  CHECK(ask(8, 3) == std::tuple(NCCL_ALGO_RING, NCCL_PROTO_LL, 0));  // 2.19 would take channels that it does not have
  CHECK(ncclTunerPlugin_v1.destroy() == ncclSuccess);
  CHECK(ask(9) == std::tuple(NCCL_ALGO_RING, NCCL_PROTO_SIMPLE, 0));  // the other communicator's
  const std::string simple = "NET/gyre: explain: all_reduce, 8 to 15 bytes: ring/simple, by " + file.path;
  const std::string ll = "NET/gyre: explain: all_reduce, 8 to 15 bytes: ring/ll, by " + file.path;
  CHECK(texts() == std::vector{simple, ll});
  CHECK(ncclTunerPlugin_v1.destroy() == ncclSuccess);
  CHECK(texts() == std::vector{simple, ll, ll + " 1 times", simple + " 2 times"});
  // Who comes then begins anew.
  REQUIRE(ncclTunerPlugin_v1.init(8, 2, keep_line) == ncclSuccess);
  logged().clear();
  CHECK(ask(8) == std::tuple(NCCL_ALGO_RING, NCCL_PROTO_SIMPLE, 0));
  CHECK(ncclTunerPlugin_v1.destroy() == ncclSuccess);
  CHECK(texts() == std::vector{simple, simple + " 1 times"});
}

TEST_CASE("a file with an error, or an option, ends a tuner's init with a line that names it") {
  const Rim rim;
  void* context = rim.stale;
  {
    const WrittenRules file("allreduce,0,1024,tree,lol,4,2,8\n");
    CHECK(ncclTunerPlugin_v4.init(8, 2, keep_line, &context) == ncclInvalidArgument);
    CHECK(context == nullptr);
    CHECK(logged().back().level == NCCL_LOG_WARN);
    CHECK(logged().back().text.starts_with("NET/gyre: tuner init: GYRE_TUNER_FILE=" + file.path + ":1:23: protocol is \"lol\""));
    CHECK(ncclTunerPlugin_v1.init(8, 2, keep_line) == ncclInvalidArgument);
  }
  CHECK(ncclTunerPlugin_v4.init(8, 2, keep_line, nullptr) == ncclInvalidArgument);
  CHECK(logged().back().text == "NET/gyre: tuner init: context is NULL");
}

TEST_CASE("a profile is asked like rules, and init says which of it are a communicator's") {
  const Rim rim;
  void* context = rim.stale;
  const auto profile = [](std::string_view made_by) {
    return R"({"nccl":{"machine":"m","version":")" + std::string(made_by) + R"(","date":"","origin":"",
      "jobs":[{"ranks_per_node":8,"nodes":2,"choices":{"all_reduce":[[0,"tree/ll"],[1024,"ring/simple"]],"reduce":[[0,"ring/ll"]]}}]}})";
  };
  const WrittenRules file(profile(profile_version));
  const auto init = [&](size_t ranks, size_t nodes) {
    return ncclTunerPlugin_v6.init(&context, 1, ranks, nodes, keep_line, nullptr, nullptr);
  };
  const auto ask = [&](size_t bytes) {
    TunerAnswer answer;
    CHECK(ncclTunerPlugin_v6.getCollInfo(context, ncclFuncAllReduce, bytes, 1, answer.table(), 7, 3, 0, &answer.channels) == ncclSuccess);
    CHECK(answer.channels == 0);
    return answer;
  };
  REQUIRE(init(32, 4) == ncclSuccess);
  CHECK(logged().back().text == "NET/gyre: tuner: 3 of 3 rules in " + file.path + " are for 32 ranks on 4 nodes, predicted for m");
  CHECK(ask(1023).cost(NCCL_ALGO_TREE, NCCL_PROTO_LL) == 0);
  CHECK(ask(1024).cost(NCCL_ALGO_RING, NCCL_PROTO_SIMPLE) == 0);
  CHECK(ask(1024).touched() == 1);
  CHECK(ncclTunerPlugin_v6.finalize(context) == ncclSuccess);
  REQUIRE(init(100'000, 12'500) == ncclSuccess);
  CHECK(logged().back().text == "NET/gyre: tuner: " + file.path +
                                    " has no job of 100000 ranks on 12500 nodes, all choices are NCCL's: what it has for 8 ranks on a node "
                                    "goes up to 4 nodes");
  CHECK(ask(8).touched() == 0);
  CHECK(ncclTunerPlugin_v6.finalize(context) == ncclSuccess);
  REQUIRE(init(8, 1) == ncclSuccess);
  CHECK(logged().back().level == NCCL_LOG_INFO);
  CHECK(logged().back().text == "NET/gyre: tuner: " + file.path +
                                    " has no job of 8 ranks on 1 nodes, all choices are NCCL's: with 8 ranks on a node it has choices "
                                    "only for other numbers of nodes");
  CHECK(ask(8).touched() == 0);
  CHECK(ncclTunerPlugin_v6.finalize(context) == ncclSuccess);
  const WrittenRules stale(profile("0.0.1"));
  CHECK(init(16, 2) == ncclInvalidArgument);
  CHECK(logged().back().text.starts_with("NET/gyre: tuner init: GYRE_TUNER_FILE=" + stale.path +
                                         ": nccl.version = \"0.0.1\": made by another gyre"));
}

TEST_CASE("a profile's job in which nothing beats NCCL's own choice is told from one that is not there") {
  const Rim rim;
  const WrittenRules file(R"({"nccl":{"machine":"m","version":")" + std::string(profile_version) + R"(","date":"","origin":"","jobs":[
    {"ranks_per_node":8,"nodes":2,"choices":{"all_reduce":[[0,"nccl"]]}},
    {"ranks_per_node":4,"nodes":1,"choices":{"all_reduce":[[0,"tree/ll"],[8,"nccl"]]}}]}})");
  const auto said = [&](size_t ranks, size_t nodes) {
    void* context = rim.stale;
    REQUIRE(ncclTunerPlugin_v6.init(&context, 1, ranks, nodes, keep_line, nullptr, nullptr) == ncclSuccess);
    TunerAnswer answer;
    CHECK(ncclTunerPlugin_v6.getCollInfo(context, ncclFuncAllReduce, 8, 1, answer.table(), 7, 3, 0, &answer.channels) == ncclSuccess);
    CHECK(answer.touched() == 0);
    const std::string text = logged().back().text;
    CHECK(ncclTunerPlugin_v6.finalize(context) == ncclSuccess);
    return text;
  };
  const std::string tuner = "NET/gyre: tuner: ";
  CHECK(said(16, 2) == tuner + "all choices for 16 ranks on 2 nodes are NCCL's: " + file.path + " has no others for them");
  CHECK(said(4, 1) == tuner + "1 of 1 rules in " + file.path + " are for 4 ranks on 1 nodes, predicted for m");
  CHECK(said(8, 1).starts_with(tuner + file.path + " has no job of 8 ranks on 1 nodes, all choices are NCCL's: with 8 ranks on a node"));
}

TEST_CASE("a profile that only says what things cost leaves all to NCCL, and init says why") {
  const Rim rim;
  const WrittenRules file(R"({"links":{},"ranks":{},"machines":{}})");
  void* context = rim.stale;
  REQUIRE(ncclTunerPlugin_v6.init(&context, 1, 8, 1, keep_line, nullptr, nullptr) == ncclSuccess);
  CHECK(logged().back().level == NCCL_LOG_INFO);
  CHECK(logged().back().text ==
        "NET/gyre: tuner: " + file.path +
            " has no choices for NCCL, all are its own; gyre-perf tune_nccl or crossovers --profile adds some to a profile");
  TunerAnswer answer;
  CHECK(ncclTunerPlugin_v6.getCollInfo(context, ncclFuncAllReduce, 8, 1, answer.table(), 7, 3, 0, &answer.channels) == ncclSuccess);
  CHECK(answer.touched() == 0);
  CHECK(ncclTunerPlugin_v6.finalize(context) == ncclSuccess);
}

TEST_CASE("nothing that NCCL asks a tuner ends a collective") {
  const Rim rim;
  TunerAnswer answer;
  const auto& newest = ncclTunerPlugin_v6;
  CHECK(newest.getCollInfo(nullptr, ncclFuncAllReduce, 8, 1, answer.table(), 7, 3, 0, &answer.channels) == ncclSuccess);
  CHECK(newest.finalize(nullptr) == ncclSuccess);
  const WrittenRules file(tree_then_ring);
  void* context = rim.stale;
  REQUIRE(newest.init(&context, 1, 8, 2, keep_line, nullptr, nullptr) == ncclSuccess);
  CHECK(newest.getCollInfo(context, ncclFuncAllReduce, 8, 1, nullptr, 7, 3, 0, &answer.channels) == ncclSuccess);
  CHECK(newest.getCollInfo(context, -5, SIZE_MAX, -1, answer.table(), 7, 3, 0, &answer.channels) == ncclSuccess);
  CHECK(answer.touched() == 0);
  CHECK(newest.getCollInfo(context, ncclFuncAllReduce, 8, 1, answer.table(), 7, 3, 0, nullptr) == ncclSuccess);
  CHECK(answer.touched() == 1);
  CHECK(newest.finalize(context) == ncclSuccess);
}
