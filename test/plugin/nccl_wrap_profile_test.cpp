// What a profile gives gyre beside NCCL: the rules by themselves, and on GPU memory.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "base/version.h"
#include "plugin/nccl/wrap_offer.h"
#include "test/catch.h"
#include "test/plugin/nccl_beside_fake.h"

using namespace gyre;
using plugin::nccl::wrap::Offer;
using plugin::nccl::wrap::Rules;
using plugin::nccl::wrap::why_no_profile;
using test::BesideFake;
using test::GpuFloats;
using test::HostCudaStream;
using test::newly_to_nccl;
using test::run_nccl;

namespace {

/// A file of its own for each, since a process reads a file once.
std::string tuner_file_of(const std::string& text) {
  static const test::Folder folder;
  static int number = 0;
  const std::string path = folder / std::to_string(++number);
  std::ofstream(path) << text;
  return "GYRE_TUNER_FILE=" + path;
}

std::string profile_with(const std::string& jobs, std::string_view made_by = profile_version) {
  return tuner_file_of(
      fmt::format(R"({{"nccl":{{"machine":"m","version":"{}","date":"","origin":"a test","jobs":[{}]}}}})", made_by, jobs));
}

std::string job_of(int per_node, int nodes, const std::string& choices) {
  return fmt::format(R"({{"ranks_per_node":{},"nodes":{},"choices":{{{}}}}})", per_node, nodes, choices);
}

/// Why NCCL runs such a call of bytes.
std::string why(const Rules& rules, Collective collective, size_t bytes, int ranks, DataType type = DataType::uint8) {
  return std::string(rules.why_not({collective, bytes, type, ReduceOp::sum, 0, 0}, ranks, true));
}

}  // namespace

TEST_CASE("wrap by a profile: taken is what its job gives gyre, by the sizes that NCCL tells its tuner") {
  const std::string left = "the profile leaves it to NCCL";
  const std::string file = profile_with(
      job_of(3, 2, R"("all_reduce":[[0,"ring/ll"],[100,"gyre"],[200,"nccl"],[300,"gyre","tree/ll"]],"broadcast":[[0,"gyre"],[8,"nccl"]],
                      "all_gather":[[0,"nccl"],[100,"gyre"],[1000,"nccl"]],"reduce_scatter":[[0,"gyre"]],"reduce":[[0,"nccl"]])"));
  const Offer all = Offer::of(test::configured({file}));
  CHECK(all.any());
  CHECK_FALSE(all.profile.empty());
  const Rules rules = all.in_job(6, 2);
  CHECK(rules.by_profile);
  CHECK(rules.collectives() == "all_reduce,reduce_scatter,all_gather,broadcast");
  for (const size_t taken : {100u, 199u, 300u, 1u << 30}) CHECK(why(rules, Collective::all_reduce, taken, 6).empty());
  for (const size_t others : {1u, 99u, 200u, 299u}) CHECK(why(rules, Collective::all_reduce, others, 6) == left);
  CHECK(why(rules, Collective::broadcast, 7, 6).empty());
  CHECK(why(rules, Collective::broadcast, 8, 6) == left);
  for (const size_t taken : {17u, 166u}) CHECK(why(rules, Collective::all_gather, taken, 6).empty());  // 102 and 996 bytes of all ranks
  for (const size_t others : {16u, 167u}) CHECK(why(rules, Collective::all_gather, others, 6) == left);
  CHECK(why(rules, Collective::reduce_scatter, 1, 6).empty());
  CHECK(why(rules, Collective::all_reduce, 0, 6) == "there is nothing to do");
  for (const Collective none : {Collective::reduce, Collective::all_to_all}) CHECK(why(rules, none, 100, 6) == left);
  CHECK(why(rules, Collective::all_reduce, 100, 6, DataType::float8e4m3).find("8-bit floats") != std::string::npos);
  for (const auto& [ranks, nodes] : {std::pair{3, 1}, {6, 1}, {4, 2}, {9, 3}}) CHECK_FALSE(all.in_job(ranks, nodes).any());
}

TEST_CASE("wrap by a profile: options of sizes limit it, GYRE_COLLECTIVES stands in its place, and examples are of its ranges") {
  const std::string file = profile_with(job_of(2, 1, R"("all_reduce":[[0,"gyre"],[64,"nccl"],[512,"gyre"],[4096,"nccl"]],
                                                        "all_gather":[[0,"nccl"],[800,"gyre"]])"));
  const Rules rules = Offer::of(test::configured({file, "GYRE_MIN_BYTES=32", "GYRE_MAX_BYTES=1K"})).in_job(2, 1);
  CHECK(why(rules, Collective::all_reduce, 31, 2) == "it is smaller than GYRE_MIN_BYTES");
  CHECK(why(rules, Collective::all_reduce, 1025, 2) == "it is larger than GYRE_MAX_BYTES");
  for (const size_t taken : {32u, 63u, 512u, 1024u}) CHECK(why(rules, Collective::all_reduce, taken, 2).empty());
  std::string examples;
  for (const auto& call : rules.examples(2)) examples += fmt::format("{}:{} ", name(call.collective), call.count);
  CHECK(examples == "all_reduce:8 all_reduce:15 all_reduce:128 all_reduce:256 all_gather:100 all_gather:256 ");
  const std::string vast = profile_with(job_of(2, 1, R"("reduce":[[0,"gyre"],[18446744073709551615,"nccl"]])"));
  CHECK(Offer::of(test::configured({vast})).in_job(2, 1).examples(2).size() == 1);
  CHECK_FALSE(Offer::of(test::configured({file, "GYRE_MIN_BYTES=2", "GYRE_MAX_BYTES=1"})).any());
  CHECK_FALSE(Offer::of(test::configured({file, "GYRE_MAX_BYTES=8"})).in_job(3, 3).any());
  const Rules named = Offer::of(test::configured({file, "GYRE_COLLECTIVES=broadcast"})).in_job(3, 3);
  CHECK_FALSE(named.by_profile);
  CHECK(why(named, Collective::broadcast, 1, 3).empty());
  CHECK(why(named, Collective::all_reduce, 512, 3) == "GYRE_COLLECTIVES does not have it");
  CHECK_FALSE(Offer::of(test::configured({file, "GYRE_COLLECTIVES="})).any());
}

TEST_CASE("wrap by a profile: a file that can't be used gives gyre nothing and says why, rules and other profiles say nothing") {
  const auto warning = [](const std::string& file) {
    const Config config = test::configured({file});
    CHECK_FALSE(Offer::of(config).any());
    for (const char* decides : {"GYRE_COLLECTIVES=reduce", "GYRE_COLLECTIVES="})
      CHECK(why_no_profile(test::configured({file, decides})).empty());
    return why_no_profile(config);
  };
  CHECK(warning("GYRE_TUNER_FILE=/nowhere") == "GYRE_TUNER_FILE=/nowhere: No such file or directory");
  CHECK(warning(profile_with("", "0.0.1")).find("made by another gyre, and this is") != std::string::npos);
  CHECK(warning(profile_with(job_of(2, 1, R"("all_reduce":[[0,"gyer"]])"))).find(R"(all_reduce[0] = [0,"gyer"]: must be)") !=
        std::string::npos);
  CHECK(warning(profile_with(job_of(2, 1, R"("all_reduce":[[0,"nccl"],[8,"ring/ll"]])"))).empty());
  CHECK(warning(tuner_file_of("allreduce,0,8,ring,ll,-1,-1,-1\n")).empty());
  CHECK(warning(tuner_file_of(R"({"links":{},"ranks":{},"machines":{}})")).empty());
  CHECK(warning("GYRE_TUNER_FILE=").empty());
}

TEST_CASE("wrap by a profile: on a GPU calls go by its job, and say so") {
  const BesideFake beside({profile_with(job_of(3, 1, R"("all_reduce":[[0,"nccl"],[1024,"gyre"],[16000,"nccl"]],
                                                        "all_gather":[[0,"nccl"],[12000,"gyre"]])"))});
  const test::KeptLog log;
  CHECK(run_nccl(3, [](ncclComm_t comm, int) -> std::string {
          GpuFloats data(6000, 1), all(3000, 0);
          HostCudaStream stream;
          for (const auto& [count, nccls] : {std::pair{size_t{255}, true}, {256, false}, {3999, false}, {4000, true}}) {
            NCCL_OK(test::reduce(data, comm, stream, count));
            if ((newly_to_nccl() == "AllReduce ") != nccls) return fmt::format("{} elements", count);
          }
          NCCL_OK(ncclAllGather(data.data() + 4096, all.data(), 1000, ncclFloat32, comm, stream));
          if (!stream.done()) return "the stream does not end";
          return data.data()[0] == 81 && data.data()[3999] == 3 && all.all(1) ? "" : "a wrong sum";
        }) == "");
  CHECK(log.count("gyre may run calls of this communicator on GPU memory: all_reduce,all_gather, by the profile") == 3);
  CHECK(log.count("all_reduce of about 1024 bytes by gyre: the profile") == 3);
  for (const auto* left : {"1020", "16000"})  // before and after gyre's of that size class
    CHECK(log.count(fmt::format("all_reduce of about {} bytes by NCCL: the profile leaves it to NCCL", left)) == 3);
  CHECK(log.count("all_gather of about 4000 bytes by gyre: the profile") == 3);
}

TEST_CASE("wrap by a profile: a communicator whose job has nothing for gyre takes no GPU, nor does such a child") {
  const BesideFake beside(
      {profile_with(job_of(4, 1, R"("all_reduce":[[0,"gyre"]])") + "," + job_of(3, 1, R"("all_reduce":[[0,"ring/ll"]])"))});
  const test::KeptLog log;
  const int used = test::host_gpus_used();
  for (const int ranks : {2, 3}) {
    CHECK(run_nccl(ranks, [&](ncclComm_t comm, int) -> std::string {
            GpuFloats data(100, 1);
            HostCudaStream stream;
            NCCL_OK(test::reduce(data, comm, stream, 100));
            return newly_to_nccl() == "AllReduce " && stream.done() && data.all(static_cast<float>(ranks)) ? "" : "not by NCCL";
          }) == "");
    CHECK(log.count(fmt::format("of {}: NCCL runs all calls of this communicator: the profile gives gyre none on 1 node", ranks)) ==
          static_cast<size_t>(ranks));
  }
  CHECK(test::host_gpus_used() == used);
  std::atomic<int> of_world{0};
  CHECK(run_nccl(4, [&](ncclComm_t comm, int rank) -> std::string {
          GpuFloats data(100, 1);
          HostCudaStream stream;
          ncclComm_t half = nullptr;
          of_world = test::host_gpus_used();
          NCCL_OK(ncclCommSplit(comm, rank / 2, rank, &half, nullptr));
          NCCL_OK(test::reduce(data, half, stream, 100));
          if (newly_to_nccl() != "AllReduce ") return "a half's is not NCCL's";
          NCCL_OK(test::reduce(data, comm, stream, 100));
          if (!newly_to_nccl().empty() || !stream.done() || !data.all(8)) return "the world's is not gyre's";
          return ncclCommDestroy(half) == ncclSuccess ? "" : "destroy";
        }) == "");
  CHECK(test::host_gpus_used() == of_world);
}

TEST_CASE("wrap on NVLinks: one node's calls are NCCL's whatever the profile, but gyre's where options name them") {
  const std::string every = R"("all_reduce":[[0,"gyre"]])";
  const BesideFake beside({profile_with(job_of(2, 1, every) + "," + job_of(4, 1, every))});
  const auto by_nccl = [](ncclComm_t comm, bool expected, float sum) -> std::string {
    GpuFloats data(100, 1);
    HostCudaStream stream;
    NCCL_OK(test::reduce(data, comm, stream, 100));
    if ((newly_to_nccl() == "AllReduce ") != expected) return expected ? "gyre has taken it" : "NCCL has it";
    return stream.done() && data.all(sum) ? "" : "a wrong sum";
  };
  test::place_host_gpu("0000:fe:1f.7");  // as in nvlinked.xml
  {
    const test::KeptLog log;
    const int used = test::host_gpus_used();
    CHECK(run_nccl(4, [&](ncclComm_t comm, int) { return by_nccl(comm, true, 4); }) == "");
    CHECK(log.count("NCCL runs all calls of this communicator: NVLinks join its GPUs, which are on one node") == 4);
    CHECK(test::host_gpus_used() == used);
  }
  BesideFake::set_up({"GYRE_COLLECTIVES=all_reduce"});
  CHECK(run_nccl(2, [&](ncclComm_t comm, int) { return by_nccl(comm, false, 2); }) == "");
  test::place_host_gpu("");  // then nobody knows where it is
  BesideFake::set_up({profile_with(job_of(2, 1, every))});
  CHECK(run_nccl(2, [&](ncclComm_t comm, int) { return by_nccl(comm, false, 2); }) == "");
}
