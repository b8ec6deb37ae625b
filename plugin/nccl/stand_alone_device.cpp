// NCCL's interface for kernels of the program's own, by gyre alone: teams of ranks are known, but no rank's kernels reach another's memory.
#include <cstdint>
#include <tuple>

#include "plugin/nccl/comm.h"
#include "plugin/nccl/errors.h"
#include "plugin/nccl/table.h"

namespace gyre::plugin::nccl {
namespace {

ncclResult_t no_kernels(const char* name) noexcept {
  return guard(name, []() -> Status {
    return Error{Code::invalid_usage, "where gyre stands alone (GYRE_NCCL) a program's kernels reach no other rank's memory"};
  });
}

/// Zeros: there is no such communicator.
template <class Team>
ncclTeam_t team_of(const char* name, ncclComm_t handle, Team team) noexcept {
  ncclTeam_t made{};
  std::ignore = guard(name, [&]() -> Status {
    made = team(*GYRE_TRY(find_made(handle)));
    return {};
  });
  return made;
}

/// In a team of which `own` is this rank in that one.
int translated(const ncclTeam_t& team, int rank, int own) { return static_cast<int>(own + (int64_t{rank} - team.rank) * team.stride); }

}  // namespace

namespace stand_alone {

ncclTeam_t ncclTeamWorld(ncclComm_t comm) noexcept {
  return team_of("ncclTeamWorld", comm, [](const Comm& own) { return ncclTeam_t{own.size, own.rank, 1}; });
}
ncclTeam_t ncclTeamLsa(ncclComm_t comm) noexcept {
  return team_of("ncclTeamLsa", comm, [](const Comm&) { return ncclTeam_t{1, 0, 1}; });
}
// Of the ranks that are in the same place of their teams above.
ncclTeam_t ncclTeamRail(ncclComm_t comm) noexcept {
  return team_of("ncclTeamRail", comm, [](const Comm& own) { return ncclTeam_t{own.size, own.rank, 1}; });
}
ncclTeam_t ncclTeamCft(ncclComm_t, ncclCftTeamMode_t) noexcept { return no_kernels("ncclTeamCft"), ncclTeam_t{}; }
ncclTeam_t ncclTeamCftMultimem(ncclComm_t) noexcept { return no_kernels("ncclTeamCftMultimem"), ncclTeam_t{}; }

int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank) noexcept {
  const ncclTeam_t world = team_of("ncclTeamRankToWorld", comm, [](const Comm& own) { return ncclTeam_t{own.size, own.rank, 1}; });
  return world.nRanks == 0 ? -1 : translated(team, rank, world.rank);
}
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank) noexcept {
  const ncclTeam_t own = stand_alone::ncclTeamLsa(comm);
  return own.nRanks == 0 ? -1 : translated(team, rank, own.rank);
}
int ncclLLA2ACalcSlots(int, int) noexcept { return no_kernels("ncclLLA2ACalcSlots"), 0; }

#define GYRE_NO_KERNELS(name, ...) \
  ncclResult_t name(__VA_ARGS__) noexcept { return no_kernels(#name); }
GYRE_NO_KERNELS(ncclDevCommCreate, ncclComm_t, const ncclDevCommRequirements_t*, ncclDevComm_t*)
GYRE_NO_KERNELS(ncclDevCommDestroy, ncclComm_t, const ncclDevComm_t*)
GYRE_NO_KERNELS(ncclLsaBarrierCreateRequirement, ncclTeam_t, int, ncclLsaBarrierHandle_t*, ncclDevResourceRequirements_t*)
GYRE_NO_KERNELS(ncclLLA2ACreateRequirement, int, int, ncclLLA2AHandle_t*, ncclDevResourceRequirements_t*)
GYRE_NO_KERNELS(ncclGinBarrierCreateRequirement, ncclComm_t, ncclTeam_t, int, ncclGinBarrierHandle_t*, ncclDevResourceRequirements_t*)
GYRE_NO_KERNELS(ncclGetLsaMultimemDevicePointer, ncclWindow_t, size_t, void**)
GYRE_NO_KERNELS(ncclGetMultimemDevicePointer, ncclWindow_t, size_t, ncclMultimemHandle_t, void**)
GYRE_NO_KERNELS(ncclGetLsaDevicePointer, ncclWindow_t, size_t, int, void**)
GYRE_NO_KERNELS(ncclGetPeerDevicePointer, ncclWindow_t, size_t, int, void**)
GYRE_NO_KERNELS(ncclGinOutboxCreateRequirement, int, int, ncclGinOutboxHandle_t*, ncclDevResourceRequirements_t*)
GYRE_NO_KERNELS(ncclGinInboxA2ACreateRequirement, ncclTeam_t, int, int, ncclGinInboxA2AHandle_t*, ncclDevResourceRequirements_t*)
GYRE_NO_KERNELS(ncclGetMultimemDeviceLeInfo, ncclWindow_t, size_t, ncclCftLeId*, size_t*)
GYRE_NO_KERNELS(ncclGetCftDeviceLeInfo, ncclWindow_t, size_t, int, ncclTeam_t, ncclCftLeId*, size_t*)
GYRE_NO_KERNELS(ncclGetPeerDeviceLeInfo, ncclWindow_t, size_t, int, ncclCftLeId*, size_t*)
#undef GYRE_NO_KERNELS

}  // namespace stand_alone
}  // namespace gyre::plugin::nccl
