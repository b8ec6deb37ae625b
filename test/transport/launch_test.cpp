#include "transport/launch.h"

#include <map>
#include <string>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::transport;

namespace {

using Variables = std::map<std::string, std::string>;

Environment environment(Variables variables) {
  return {[variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  }};
}

Rendezvous found(const Variables& variables) {
  const auto result = rendezvous_from_environment(environment(variables));
  INFO((result ? "" : result.error().what));
  REQUIRE(result);
  REQUIRE(result->has_value());
  return **result;
}

std::string problem(const Variables& variables) {
  const auto result = rendezvous_from_environment(environment(variables));
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Code::invalid_argument);
  return result.error().what;
}

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}
Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

const Variables gyre_variables{{"GYRE_RANK", "1"}, {"GYRE_SIZE", "4"}, {"GYRE_ROOT", "sun:29500"}};
const Variables torchrun{{"RANK", "2"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "moon"}, {"MASTER_PORT", "29400"}};
const Variables open_mpi{{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"OMPI_MCA_orte_precondition_transports", "6346a8b8-e7c1fe15"},
                         {"OMPI_MCA_orte_hnp_uri", "19737.0;tcp://192.0.2.2,10.0.0.2:55939;tcp6://[fd00::2]:60767"}};
const Variables srun{{"SLURM_PROCID", "5"},
                     {"SLURM_NTASKS", "16"},
                     {"SLURM_STEP_NODELIST", "gpu[003-010,12],login1"},
                     {"SLURM_JOB_ID", "4711"},
                     {"SLURM_STEP_ID", "0"}};

}  // namespace

TEST_CASE("without a launcher there is no rendezvous") {
  const auto result = rendezvous_from_environment(environment({{"RANK", "3"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}));
  REQUIRE(result);
  CHECK_FALSE(result->has_value());
}

TEST_CASE("gyre's own variables come first") {
  Variables both = gyre_variables;
  both.insert(torchrun.begin(), torchrun.end());
  const Rendezvous r = found(both);
  CHECK(r.rank == 1);
  CHECK(r.size == 4);
  CHECK(r.host == "sun");
  CHECK(r.port == 29500);
  CHECK(r.ports == 1);
  CHECK(found(with(gyre_variables, "GYRE_ROOT", "[::1]:5")).host == "::1");
  CHECK(found({{"GYRE_RANK", "0"}, {"GYRE_SIZE", "1"}}).size == 1);
}

TEST_CASE("torchrun's store keeps its port, ours is one of the next eight") {
  const Rendezvous r = found(torchrun);
  CHECK(r.rank == 2);
  CHECK(r.size == 8);
  CHECK(r.host == "moon");
  CHECK(r.port == 29401);
  CHECK(r.ports == 8);
  CHECK(r.job == found(with(torchrun, "RANK", "7")).job);
  CHECK(r.job != found(with(torchrun, "TORCHELASTIC_RESTART_COUNT", "1")).job);
}

TEST_CASE("Open MPI's ranks meet on mpirun's host, or on loopback when all are local") {
  const Rendezvous r = found(open_mpi);
  CHECK(r.rank == 3);
  CHECK(r.host == "192.0.2.2");
  CHECK(r.port >= 20000);
  CHECK(r.port + r.ports - 1 <= 29999);
  CHECK(r.job != found(with(open_mpi, "OMPI_MCA_orte_precondition_transports", "other")).job);
  CHECK(found(with(open_mpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "4")).host == "127.0.0.1");
  CHECK(found(with(open_mpi, "MASTER_ADDR", "moon")).host == "moon");
  CHECK(found(with(without(open_mpi, "OMPI_MCA_orte_precondition_transports"), "PMIX_NAMESPACE", "job1")).job != 0);
}

TEST_CASE("srun's ranks meet on the first host of the step") {
  const Rendezvous r = found(srun);
  CHECK(r.rank == 5);
  CHECK(r.size == 16);
  CHECK(r.host == "gpu003");
  CHECK(r.port == found(with(srun, "SLURM_PROCID", "0")).port);
  CHECK(r.job != found(with(srun, "SLURM_STEP_ID", "1")).job);
  CHECK(found(with(srun, "SLURM_STEP_NUM_TASKS", "8")).size == 8);
}

TEST_CASE("GYRE_ROOT gives the address whatever the launcher says") {
  for (const Variables& launcher : {torchrun, open_mpi, srun, Variables{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}}) {
    const Rendezvous r = found(with(launcher, "GYRE_ROOT", "10.1.1.1:123"));
    CHECK(r.host == "10.1.1.1");
    CHECK(r.port == 123);
    CHECK(r.ports == 1);
  }
}

TEST_CASE("what is malformed is an error that names the variable") {
  CHECK(problem(with(torchrun, "RANK", "x")) == "RANK=x is not a number");
  CHECK(problem(with(torchrun, "RANK", "-1")) == "RANK=-1 is not a number");
  CHECK(problem(with(torchrun, "RANK", "8")) == "RANK=8 is not below WORLD_SIZE=8");
  CHECK(problem(without(torchrun, "MASTER_ADDR")).find("MASTER_ADDR is not set") == 0);
  CHECK(problem(without(torchrun, "MASTER_PORT")).find("MASTER_PORT is not set") == 0);
  CHECK(problem(with(torchrun, "MASTER_PORT", "65530")).find("MASTER_PORT=65530") == 0);
  CHECK(problem({{"GYRE_RANK", "0"}}) == "GYRE_SIZE is not set");
  CHECK(problem(without(gyre_variables, "GYRE_ROOT")).find("GYRE_ROOT is not set") == 0);
  for (const char* root : {"sun", "sun:", ":5", "::1:5", "sun:70000", "sun:0"})
    CHECK(problem(with(gyre_variables, "GYRE_ROOT", root)).find("GYRE_ROOT=") == 0);
  CHECK(problem(without(open_mpi, "OMPI_MCA_orte_hnp_uri")).find("GYRE_ROOT") != std::string::npos);
  CHECK(problem(with(srun, "SLURM_STEP_NODELIST", "gpu[")).find("SLURM_STEP_NODELIST=gpu[") == 0);
  CHECK(problem({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}).find("PMI_FD") != std::string::npos);
}

TEST_CASE("the first host is read from srun's short form") {
  CHECK(first_host("gpu[003-010,12],login1") == "gpu003");
  CHECK(first_host("login1,gpu[1-2]") == "login1");
  CHECK(first_host("gpu[7]") == "gpu7");
  CHECK(first_host("rack[1-2]host[03-04]") == "rack1host03");
  CHECK(first_host("gpu[1-2]-ib,x") == "gpu1-ib");
  CHECK(first_host("one") == "one");
  CHECK(first_host("").empty());
  CHECK(first_host("gpu[1-2").empty());
}

TEST_CASE("the first address of mpirun's host that is not loopback is taken") {
  CHECK(first_ipv4("1.0;tcp://127.0.0.1,192.0.2.2:55939;tcp6://[fd00::2]:60767") == "192.0.2.2");
  CHECK(first_ipv4("1.0;tcp6://[fd00::2]:60767").empty());
  CHECK(first_ipv4("1.0;tcp://127.0.0.1:5").empty());
  CHECK(first_ipv4("").empty());
}

TEST_CASE("a host's identity is stable and can be given") {
  CHECK(host_identity(environment({})) == host_identity(environment({})));
  CHECK(host_identity(environment({})).size() > 36);
  CHECK(host_identity(environment({{"GYRE_HOSTID", "a"}})) == "a");
}
