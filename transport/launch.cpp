#include "transport/launch.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "base/hash.h"
#include "transport/pmi.h"

namespace gyre::transport {
namespace {

using Found = Result<std::optional<Rendezvous>>;

/// Ports tried by ranks that only know what their job is called: the first of 20000 … 29991 by the job's id, and the next seven.
constexpr int derived_ports = 8;

Error bad(std::string text) { return Error{Code::invalid_argument, std::move(text)}; }

std::optional<int> to_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<int> number(const Environment& env, const char* name) {
  const auto text = env.get(name);
  if (!text) return bad(fmt::format("{} is not set", name));
  const auto value = to_number(*text);
  if (!value || *value < 0) return bad(fmt::format("{}={} is not a number", name, *text));
  return *value;
}

Result<uint16_t> port_number(std::string_view text, std::string_view variable, int ports = 1) {
  const auto value = to_number(text);
  if (!value || *value < 1 || *value + ports - 1 > 65535) return bad(fmt::format("{}: {} is not a usable port", variable, text));
  return static_cast<uint16_t>(*value);
}

/// Rank and size, checked.
Result<Rendezvous> place(const Environment& env, const char* rank_name, const char* size_name) {
  Rendezvous rendezvous;
  rendezvous.rank = GYRE_TRY(number(env, rank_name));
  rendezvous.size = GYRE_TRY(number(env, size_name));
  if (rendezvous.rank >= rendezvous.size)
    return bad(fmt::format("{}={} is not below {}={}", rank_name, rendezvous.rank, size_name, rendezvous.size));
  return rendezvous;
}

void derive_port(Rendezvous& rendezvous, std::string_view job) {
  rendezvous.job = fnv1a(job);
  rendezvous.port = static_cast<uint16_t>(20000 + rendezvous.job % (10000 - derived_ports));
  rendezvous.ports = derived_ports;
}

bool has(const Environment& env, const char* name) { return env.get(name).has_value(); }

/// True when GYRE_ROOT or the size leaves nothing to be found out.
Result<bool> address_given(const Environment& env, Rendezvous& rendezvous) {
  const auto root = env.get("GYRE_ROOT");
  if (!root) return rendezvous.size == 1;
  const size_t colon = root->rfind(':');
  std::string host = colon == std::string::npos ? "" : root->substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string::npos)
    host.clear();  // IPv6 without brackets: where would the port begin?
  if (host.empty()) return bad(fmt::format("GYRE_ROOT={} is not host:port or [address]:port", *root));
  rendezvous.host = std::move(host);
  rendezvous.port = GYRE_TRY(port_number(std::string_view(*root).substr(colon + 1), "GYRE_ROOT=" + *root));
  rendezvous.ports = 1;
  return true;
}

Found from_gyre(const Environment& env) {
  Rendezvous rendezvous = GYRE_TRY(place(env, "GYRE_RANK", "GYRE_SIZE"));
  if (!GYRE_TRY(address_given(env, rendezvous))) return bad("GYRE_ROOT is not set: give host:port of rank 0");
  return std::optional(rendezvous);
}

// torchrun's own store listens on MASTER_PORT, so ours is one of the next eight. A restarted job is another job.
Found from_torchrun(const Environment& env) {
  constexpr int ports = 8;
  Rendezvous rendezvous = GYRE_TRY(place(env, "RANK", "WORLD_SIZE"));
  rendezvous.job = fnv1a("torchrun " + env.get("TORCHELASTIC_RUN_ID").value_or("") + " " + env.get("MASTER_PORT").value_or("") + " " +
                         env.get("TORCHELASTIC_RESTART_COUNT").value_or("0"));
  if (GYRE_TRY(address_given(env, rendezvous))) return std::optional(rendezvous);
  const auto host = env.get("MASTER_ADDR");
  const auto port = env.get("MASTER_PORT");
  if (!host || host->empty()) return bad("MASTER_ADDR is not set: RANK and WORLD_SIZE are, as by torchrun");
  if (!port) return bad("MASTER_PORT is not set: RANK and WORLD_SIZE are, as by torchrun");
  rendezvous.host = *host;
  rendezvous.port = static_cast<uint16_t>(GYRE_TRY(port_number(*port, "MASTER_PORT=" + *port, ports + 1)) + 1);
  rendezvous.ports = ports;
  return std::optional(rendezvous);
}

// Open MPI does not say where rank 0 is. It is on mpirun's host unless that was left out of the host list; then GYRE_ROOT is needed.
Found from_open_mpi(const Environment& env) {
  Rendezvous rendezvous = GYRE_TRY(place(env, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"));
  std::string job;
  for (const char* name : {"OMPI_MCA_orte_precondition_transports", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})
    if (job.empty()) job = env.get(name).value_or("");
  derive_port(rendezvous, "ompi " + job);
  if (GYRE_TRY(address_given(env, rendezvous))) return std::optional(rendezvous);
  if (job.empty()) return bad("mpirun gives no job id (PMIX_NAMESPACE is not set): set GYRE_ROOT=host:port of rank 0");
  const auto local = env.get("OMPI_COMM_WORLD_LOCAL_SIZE");
  const std::string mpirun = first_ipv4(env.get("OMPI_MCA_orte_hnp_uri").value_or(""));
  if (local && *local == env.get("OMPI_COMM_WORLD_SIZE"))
    rendezvous.host = "127.0.0.1";
  else if (const auto master = env.get("MASTER_ADDR"))
    rendezvous.host = *master;
  else if (!mpirun.empty())
    rendezvous.host = mpirun;
  else
    return bad("mpirun does not say where rank 0 is (OMPI_MCA_orte_hnp_uri has no address): set GYRE_ROOT=host:port of rank 0");
  return std::optional(rendezvous);
}

// Rank 0 publishes its address by PMI; the name of PMI's key-value space is the job's id.
Found from_mpich(const Environment& env) {
  Rendezvous rendezvous = GYRE_TRY(place(env, "PMI_RANK", "PMI_SIZE"));
  derive_port(rendezvous, "mpich");
  if (GYRE_TRY(address_given(env, rendezvous))) return std::optional(rendezvous);
  if (!has(env, "PMI_FD")) return bad("PMI_RANK is set but PMI_FD is not: set GYRE_ROOT=host:port of rank 0");
  const bool local = env.get("MPI_LOCALNRANKS") == env.get("PMI_SIZE");
  std::string mine = local ? "127.0.0.1" : env.get("MASTER_ADDR").value_or("");
  if (mine.empty()) mine = own_address();
  const int fd = GYRE_TRY(number(env, "PMI_FD"));
  const SharedByPmi shared = GYRE_TRY(share_by_pmi(fd, rendezvous.rank, mine));
  derive_port(rendezvous, "mpich " + shared.job);
  rendezvous.host = shared.text;
  return std::optional(rendezvous);
}

// Rank 0 is on the first host of the step, whatever the distribution.
Found from_srun(const Environment& env) {
  const char* size_name = has(env, "SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  Rendezvous rendezvous = GYRE_TRY(place(env, "SLURM_PROCID", size_name));
  derive_port(rendezvous, "slurm " + env.get("SLURM_JOB_ID").value_or("") + "." + env.get("SLURM_STEP_ID").value_or(""));
  if (GYRE_TRY(address_given(env, rendezvous))) return std::optional(rendezvous);
  if (!has(env, "SLURM_JOB_ID")) return bad("SLURM_JOB_ID is not set: SLURM_PROCID is, as by srun");
  const char* list_name = has(env, "SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_NODELIST";
  const std::string list = env.get(list_name).value_or("");
  rendezvous.host = first_host(list);
  if (rendezvous.host.empty()) rendezvous.host = env.get("MASTER_ADDR").value_or("");
  if (rendezvous.host.empty()) return bad(fmt::format("{}={} names no host: set GYRE_ROOT=host:port of rank 0", list_name, list));
  return std::optional(rendezvous);
}

}  // namespace

Environment Environment::of_process() {
  return {[](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  }};
}

Result<std::optional<Rendezvous>> rendezvous_from_environment(const Environment& env) {
  if (has(env, "GYRE_RANK") || has(env, "GYRE_SIZE")) return from_gyre(env);
  // RANK alone is too common a name. A script that sbatch runs has SLURM_PROCID too, but is in no step: it is one process, not a rank.
  if (has(env, "RANK") && has(env, "WORLD_SIZE")) return from_torchrun(env);
  if (has(env, "OMPI_COMM_WORLD_RANK")) return from_open_mpi(env);
  if (has(env, "PMI_RANK") && has(env, "PMI_SIZE")) return from_mpich(env);
  if (has(env, "SLURM_PROCID") && has(env, "SLURM_STEP_ID")) return from_srun(env);
  return std::optional<Rendezvous>();
}

std::string host_identity(const Environment& env) {
  if (const auto given = env.get("GYRE_HOSTID")) return *given;
  std::string boot = "?";
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat net {};
  if (::stat("/proc/self/ns/net", &net) != 0) net.st_ino = 0;
  return fmt::format("{}-{}", boot, net.st_ino);
}

std::string first_host(std::string_view list) {
  const size_t end = list.find_first_of(",[");
  std::string host(list.substr(0, end));
  if (end == std::string_view::npos || list[end] == ',') return host;
  const size_t close = list.find(']', end);
  if (close == std::string_view::npos) return {};
  host += list.substr(end + 1, list.find_first_of("-,]", end + 1) - end - 1);
  // More may follow the bracket: "rack[1-2]host[3-4],…".
  const std::string rest = first_host(list.substr(close + 1));
  return host + (close + 1 < list.size() && list[close + 1] != ',' ? rest : "");
}

std::string first_ipv4(std::string_view uri) {
  constexpr std::string_view scheme = "tcp://";
  const size_t at = uri.find(scheme);
  if (at == std::string_view::npos) return {};
  std::string_view rest = uri.substr(at + scheme.size());
  rest = rest.substr(0, rest.find(':'));
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    if (!one.starts_with("127.")) return std::string(one);
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
  }
  return {};
}

}  // namespace gyre::transport
