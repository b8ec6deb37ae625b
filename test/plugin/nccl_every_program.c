/* A rank of a program that calls every function of NCCL's interface, by gyre alone on host memory. That none is missing here the symbols
 * say that it leaves open (test/system/nccl_every.py).
 *
 *     nccl-every-program STORY RANK RANKS FILE */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>

#include "test/plugin/nccl_new_calls.h"
#include "test/plugin/nccl_program.h"

enum { ROOM = 8 * 1000 };

static ncclCollConfig_t collective_config(void) {
  const int open = NCCL_CONFIG_UNDEF_INT;
  return (ncclCollConfig_t){sizeof(ncclCollConfig_t), NCCL_CONFIG_MAGIC, 23200, NULL, open, open, open, open, NULL, 1, open, 0, NULL};
}

/* How collectives are called: 0 as they are, 1 with no configuration, 2 with one that gyre passes over. */
static int configured;
static const ncclCollConfig_t* given;
#define CALLED(name, ...) (configured == 0 ? name(__VA_ARGS__) : name##Config(__VA_ARGS__, given))

static ncclConfig_t config(int blocking) {
  ncclConfig_t made;
  memset(&made, 0, sizeof made);
  made.size = 24; /* as of 2.14, which has no other field */
  made.magic = NCCL_CONFIG_MAGIC;
  made.version = 21400;
  made.blocking = blocking;
  return made;
}

/* Of a communicator beside that one, by which rank 0 hands it round. */
static ncclUniqueId next_id(ncclComm_t comm) {
  ncclUniqueId id = {{0}};
  if (rank == 0) MUST(ncclGetUniqueId(&id));
  MUST(ncclBcast(&id, sizeof id, ncclUint8, 0, comm, NULL));
  return id;
}

static ncclResult_t settled(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  for (; state == ncclInProgress; usleep(100)) MUST(ncclCommGetAsyncError(comm, &state));
  return state;
}

/* For calls on communicators that do not block. */
#define BEGUN(comm, call)                                                                                 \
  do {                                                                                                    \
    const ncclResult_t begun = (call);                                                                    \
    EXPECT(begun == ncclSuccess || begun == ncclInProgress, #call " is '%s'", ncclGetErrorString(begun)); \
    const ncclResult_t came_to = settled(comm);                                                           \
    EXPECT(came_to == ncclSuccess, #call " came to '%s'", ncclGetErrorString(came_to));                   \
  } while (0)

static void check_sum(ncclComm_t comm) {
  int count = 0, own = -1;
  MUST(ncclCommCount(comm, &count));
  MUST(ncclCommUserRank(comm, &own));
  int64_t value = own + 1, sum = 0;
  MUST(ncclAllReduce(&value, &sum, 1, ncclInt64, ncclSum, comm, NULL));
  EXPECT(sum == (int64_t)count * (count + 1) / 2, "%lld of %d ranks", (long long)sum, count);
}

/* Each has `count` elements, all of them element(rank, place). */
static void reductions(ncclComm_t comm, const float* in, float* out, size_t count) {
  const int root = ranks - 1;
  const float total = (float)(ranks * (ranks + 1) / 2);
  MUST(CALLED(ncclReduce, in, out, count, ncclFloat32, ncclSum, root, comm, NULL));
  for (size_t i = 0; i < count && rank == root; ++i) EXPECT(out[i] == total * element(0, i), "reduce, %zu: %g", i, (double)out[i]);
  MUST(CALLED(ncclAllReduce, in, out, count, ncclFloat32, ncclMin, comm, NULL));
  for (size_t i = 0; i < count; ++i) EXPECT(out[i] == element(0, i), "minimum, %zu: %g", i, (double)out[i]);
  MUST(CALLED(ncclReduceScatter, in, out, count / (size_t)ranks, ncclFloat32, ncclMax, comm, NULL));
  for (size_t i = 0; i < count / (size_t)ranks; ++i)
    EXPECT(out[i] == element(ranks - 1, (size_t)rank * (count / (size_t)ranks) + i), "reduce-scatter, %zu: %g", i, (double)out[i]);
}

static void moves(ncclComm_t comm, const float* in, float* out, size_t count) {
  const int root = ranks - 1;
  const size_t block = count / (size_t)ranks, all = block * (size_t)ranks;
  MUST(CALLED(ncclAlltoAll, in, out, block, ncclFloat32, comm, NULL));
  for (size_t i = 0; i < all; ++i)
    EXPECT(out[i] == element((int)(i / block), (size_t)rank * block + i % block), "all-to-all, %zu: %g", i, (double)out[i]);
  MUST(CALLED(ncclGather, in, out, block, ncclFloat32, root, comm, NULL));
  for (size_t i = 0; i < all && rank == root; ++i)
    EXPECT(out[i] == element((int)(i / block), i % block), "gather, %zu: %g", i, (double)out[i]);
  MUST(CALLED(ncclScatter, in, out, block, ncclFloat32, root, comm, NULL));
  for (size_t i = 0; i < block; ++i) EXPECT(out[i] == element(root, (size_t)rank * block + i), "scatter, %zu: %g", i, (double)out[i]);
  MUST(CALLED(ncclAllGather, in, out, block, ncclFloat32, comm, NULL));
  for (size_t i = 0; i < all; ++i) EXPECT(out[i] == element((int)(i / block), i % block), "all-gather, %zu: %g", i, (double)out[i]);
  MUST(CALLED(ncclBroadcast, in, out, count, ncclFloat32, root, comm, NULL));
  for (size_t i = 0; i < count; ++i) EXPECT(out[i] == element(root, i), "broadcast, %zu: %g", i, (double)out[i]);
  memcpy(out, in, count * sizeof *out);
  MUST(ncclBcast(out, count, ncclFloat32, 0, comm, NULL));
  for (size_t i = 0; i < count; ++i) EXPECT(out[i] == element(0, i), "broadcast in place, %zu: %g", i, (double)out[i]);
}

/* Around the ranks, of which there may be one. */
static void pass_on(ncclComm_t comm, const float* in, float* out, size_t count) {
  const int from = (rank + ranks - 1) % ranks;
  MUST(ncclGroupStart());
  MUST(ncclSend(in, count, ncclFloat32, (rank + 1) % ranks, comm, NULL));
  MUST(ncclRecv(out, count, ncclFloat32, from, comm, NULL));
  MUST(ncclGroupEnd());
  for (size_t i = 0; i < count; ++i) EXPECT(out[i] == element(from, i), "from rank %d, %zu: %g", from, i, (double)out[i]);
}

static void premultiplied(ncclComm_t comm) {
  ncclRedOp_t op = ncclSum;
  float value = 1, sum = 0, scalar = (float)(rank + 1);
  MUST(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, comm));
  MUST(ncclAllReduce(&value, &sum, 1, ncclFloat32, op, comm, NULL));
  EXPECT(sum == (float)(ranks * (ranks + 1) / 2), "%g", (double)sum);
  MUST(ncclRedOpDestroy(op, comm));
  EXPECT(ncclAllReduce(&value, &sum, 1, ncclFloat32, op, comm, NULL) == ncclInvalidArgument, "an operation that was destroyed");
}

/* A group that is only asked what it would take is not run. */
static void simulated(ncclComm_t comm) {
  float value = 1, sum = -1;
  ncclSimInfo_t info = {sizeof info, NCCL_SIM_INFO_MAGIC, 22200, -1};
  MUST(ncclGroupStart());
  MUST(ncclAllReduce(&value, &sum, 1, ncclFloat32, ncclSum, comm, NULL));
  MUST(ncclGroupSimulateEnd(&info));
  EXPECT(sum == -1, "%g", (double)sum);
  EXPECT(info.estimatedTime >= -1, "%g us", (double)info.estimatedTime);
}

static void all_of_a_process(void) {
  ncclComm_t comms[3];
  int64_t values[3] = {1, 10, 100};
  MUST(ncclCommInitAll(comms, 3, NULL));
  MUST(ncclGroupStart());
  for (int i = 0; i < 3; ++i) MUST(ncclAllReduce(&values[i], &values[i], 1, ncclInt64, ncclSum, comms[i], NULL));
  MUST(ncclGroupEnd());
  for (int i = 0; i < 3; ++i) EXPECT(values[i] == 111, "%lld", (long long)values[i]);
  for (int i = 0; i < 3; ++i) MUST(ncclCommDestroy(comms[i]));
}

static void parts(ncclComm_t comm) {
  ncclComm_t part = NULL;
  MUST(ncclCommSplit(comm, rank % 2, -rank, &part, NULL));
  check_sum(part);
  MUST(ncclCommDestroy(part));
  MUST(ncclCommSplit(comm, rank == 0 ? 0 : NCCL_SPLIT_NOCOLOR, 0, &part, NULL));
  EXPECT((part == NULL) == (rank != 0), "%p", (void*)part);
  if (part != NULL) MUST(ncclCommDestroy(part));
  int last = ranks - 1;
  if (rank != last) {
    MUST(ncclCommShrink(comm, &last, 1, &part, NULL, NCCL_SHRINK_DEFAULT));
    check_sum(part);
  }
  check_sum(comm); /* then nothing is under way on the part, which would end by that */
  if (rank == last) return;
  MUST(ncclCommRevoke(part, 0));
  MUST(ncclCommAbort(part));
}

/* Memory of NCCL's, registered as PyTorch's allocator has it. */
static void on_its_memory(ncclComm_t comm) {
  float *in = NULL, *out = NULL;
  void* registered = &in;
  ncclWindow_t window = (ncclWindow_t)&window;
  MUST(ncclMemAlloc((void**)&in, ROOM * sizeof *in));
  MUST(ncclMemAlloc((void**)&out, ROOM * sizeof *out));
  MUST(ncclCommRegister(comm, in, ROOM * sizeof *in, &registered));
  MUST(ncclCommWindowRegister(comm, out, ROOM * sizeof *out, &window, NCCL_WIN_COLL_SYMMETRIC));
  EXPECT(window == NULL, "a window, of which gyre has none: %p", (void*)window);
  fill(in, ROOM);
  const size_t counts[] = {ROOM, 1000, (size_t)ranks};
  ncclCollConfig_t wide = collective_config();
  wide.minCTAs = 1, wide.maxCTAs = 64, wide.cgaClusterSize = 4, wide.CTAPolicy = 1, wide.userProfilerTag = 7;
  wide.algSelection = "ring", wide.forceAlgSelection = 0;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
    for (configured = 0; configured < 3; ++configured) {
      given = configured == 2 ? &wide : NULL;
      reductions(comm, in, out, counts[i]);
      moves(comm, in, out, counts[i]);
    }
    pass_on(comm, in, out, counts[i]);
  }
  MUST(ncclCommWindowDeregister(comm, window));
  MUST(ncclCommDeregister(comm, registered));
  MUST(ncclMemFree(out));
  MUST(ncclMemFree(in));
}

static void everything(void) {
  int version = 0, device = -1;
  ncclComm_t comm = NULL, second = NULL, third = NULL;
  ncclResetDebugInit();
  MUST(ncclGetVersion(&version));
  EXPECT(version > 20000, "%d", version);
  MUST(ncclCommInitRank(&comm, ranks, share_id(), rank));
  MUST(ncclCommCuDevice(comm, &device));
  ncclConfig_t blocking = config(1);
  MUST(ncclCommInitRankConfig(&second, ranks, next_id(comm), rank, &blocking));
  ncclUniqueId ids[2] = {next_id(comm), next_id(comm)};
  MUST(ncclCommInitRankScalable(&third, ranks, rank, ranks > 1 ? 2 : 1, ids, NULL));
  on_its_memory(comm);
  premultiplied(second);
  simulated(second);
  check_sum(third);
  parts(third);
  all_of_a_process();
  EXPECT(settled(comm) == ncclSuccess, "%d", (int)settled(comm));
  MUST(ncclCommFinalize(comm));
  EXPECT(ncclCommFinalize(comm) == ncclInvalidArgument, "finalized twice");
  MUST(ncclCommDestroy(comm));
  EXPECT(ncclCommDestroy(comm) == ncclInvalidArgument, "destroyed twice");
  MUST(ncclCommDestroy(second));
  MUST(ncclCommAbort(third));
}

/* What gyre does not do says that it does not, by name. */
static void refused(void) {
  for (int i = 0; i < MANY_NEW_CALLS; ++i) {
    const char* name = new_calls[i].name;
    const ncclResult_t result = new_calls[i].call();
    if (strcmp(name, "ncclCommRevoke") == 0 || strcmp(name, "ncclParamDumpAll") == 0) continue;
    EXPECT(result == ncclInvalidUsage, "%s: %d", name, (int)result);
    EXPECT(strncmp(ncclGetLastError(NULL), name, strlen(name)) == 0, "nothing of %s", name);
  }
}

static ncclResult_t sum_by(ncclComm_t comm, const ncclCollConfig_t* by) {
  float value = 1;
  return ncclAllReduceConfig(&value, &value, 1, ncclFloat32, ncclSum, comm, NULL, by);
}

/* A configuration that is none, or asks for what gyre does not do, is an error of the call, and of its group. */
static void wrongly_configured(void) {
  ncclComm_t comm = NULL;
  MUST(ncclCommInitRank(&comm, ranks, share_id(), rank));
  const struct {
    ncclResult_t result;
    const char* words;
  } expected[] = {{ncclInvalidArgument, "config.size is 8"},
                  {ncclInvalidArgument, "config.magic is 0"},
                  {ncclInvalidArgument, "config.minCTAs is 3, more than"},
                  {ncclInvalidArgument, "config.forceAlgSelection is 2"},
                  {ncclInvalidUsage, "config.algSelection is nvls"},
                  {ncclInvalidUsage, "launchCompletionEvent"}};
  enum { MANY = sizeof expected / sizeof *expected };
  ncclCollConfig_t wrong[MANY];
  for (int i = 0; i < MANY; ++i) wrong[i] = collective_config();
  wrong[0].size = 8;
  wrong[1].magic = 0;
  wrong[2].minCTAs = 3, wrong[2].maxCTAs = 2;
  wrong[3].forceAlgSelection = 2;
  wrong[4].algSelection = "nvls";
  wrong[5].launchCompletionEvent = (cudaEvent_t)&comm;
  for (int i = 0; i < MANY; ++i) {
    const ncclResult_t result = sum_by(comm, &wrong[i]);
    EXPECT(result == expected[i].result, "%d: %d", i, (int)result);
    EXPECT(strstr(ncclGetLastError(comm), expected[i].words) != NULL, "nothing of '%s'", expected[i].words);
  }
  wrong[5].size = 64; /* as of 2.31, which has no such field */
  MUST(sum_by(comm, &wrong[5]));
  float value = 1;
  MUST(ncclGroupStart());
  MUST(ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, NULL));
  EXPECT(sum_by(comm, &wrong[4]) == ncclInvalidUsage, "an algorithm of NCCL's");
  EXPECT(ncclGroupEnd() == ncclInvalidUsage && value == 1, "the group is run: %g", (double)value);
  check_sum(comm);
  MUST(ncclCommDestroy(comm));
}

static void encryption(void) {
  ncclEncryptionConfig_t open = {sizeof open, NCCL_CONFIG_MAGIC, 23200, NCCL_ENCRYPTION_MODE_NONE, NULL};
  MUST(ncclSetEncryption(&open));
  open.mode = NCCL_ENCRYPTION_MODE_PSK;
  EXPECT(ncclSetEncryption(&open) == ncclInvalidUsage, "encrypted");
  open.mode = 2;
  EXPECT(ncclSetEncryption(&open) == ncclInvalidArgument, "another mode");
  open.magic = 0;
  EXPECT(ncclSetEncryption(&open) == ncclInvalidArgument, "no configuration");
  EXPECT(ncclSetEncryption(NULL) == ncclInvalidArgument, "NULL");
}

static void expect_team(const char* name, ncclTeam_t team, int size, int own, int stride) {
  EXPECT(team.nRanks == size && team.rank == own && team.stride == stride, "%s: %d, %d, %d", name, team.nRanks, team.rank, team.stride);
}

/* Of the interface for a program's own kernels: teams are known, and nothing else. */
static void kernels(void) {
  ncclComm_t comm = NULL;
  MUST(ncclCommInitRank(&comm, ranks, share_id(), rank));
  const ncclTeam_t world = ncclTeamWorld(comm), pairs = {2, rank % 2, 1}, others = {ranks / 2, rank / 2, 2};
  expect_team("world", world, ranks, rank, 1);
  expect_team("lsa", ncclTeamLsa(comm), 1, 0, 1);
  expect_team("rail", ncclTeamRail(comm), ranks, rank, 1);
  expect_team("cft", ncclTeamCft(comm, 0), 0, 0, 0);
  expect_team("cft's multimem", ncclTeamCftMultimem(comm), 0, 0, 0);
  EXPECT(ncclTeamRankToWorld(comm, world, 1) == 1, "%d", ncclTeamRankToWorld(comm, world, 1));
  EXPECT(ncclTeamRankToWorld(comm, pairs, 0) == rank - rank % 2, "%d", ncclTeamRankToWorld(comm, pairs, 0));
  EXPECT(ncclTeamRankToWorld(comm, others, 1) == 2 + rank % 2, "%d", ncclTeamRankToWorld(comm, others, 1));
  EXPECT(ncclTeamRankToLsa(comm, world, rank) == 0, "%d", ncclTeamRankToLsa(comm, world, rank));
  EXPECT(ncclTeamRankToLsa(comm, world, rank + 1) == 1, "%d", ncclTeamRankToLsa(comm, world, rank + 1));
  EXPECT(ncclLLA2ACalcSlots(4, 16) == 0, "%d", ncclLLA2ACalcSlots(4, 16));
  char room[4096] = {0};
  void* memory = room;
  const ncclMultimemHandle_t handle = {room};
  uint32_t id = 0;
  size_t offset = 0;
#define REFUSED(name, ...)                                    \
  EXPECT(name(__VA_ARGS__) == ncclInvalidUsage, "%s", #name); \
  EXPECT(strstr(ncclGetLastError(comm), #name ": where gyre stands alone") != NULL, "%s", #name)
  REFUSED(ncclDevCommCreate, comm, (const void*)room, (void*)room);
  REFUSED(ncclDevCommDestroy, comm, (const void*)room);
  REFUSED(ncclLsaBarrierCreateRequirement, world, 1, (void*)room, (void*)room);
  REFUSED(ncclLLA2ACreateRequirement, 1, 1, (void*)room, (void*)room);
  REFUSED(ncclGinBarrierCreateRequirement, comm, world, 1, (void*)room, (void*)room);
  REFUSED(ncclGetLsaMultimemDevicePointer, NULL, 0, &memory);
  REFUSED(ncclGetMultimemDevicePointer, NULL, 0, handle, &memory);
  REFUSED(ncclGetLsaDevicePointer, NULL, 0, 0, &memory);
  REFUSED(ncclGetPeerDevicePointer, NULL, 0, 0, &memory);
  REFUSED(ncclGinOutboxCreateRequirement, 1, 1, (void*)room, (void*)room);
  REFUSED(ncclGinInboxA2ACreateRequirement, world, 1, 1, (void*)room, (void*)room);
  REFUSED(ncclGetMultimemDeviceLeInfo, NULL, 0, &id, &offset);
  REFUSED(ncclGetCftDeviceLeInfo, NULL, 0, 0, world, &id, &offset);
  REFUSED(ncclGetPeerDeviceLeInfo, NULL, 0, 0, &id, &offset);
  MUST(ncclCommDestroy(comm));
  expect_team("the world of a communicator that is gone", ncclTeamWorld(comm), 0, 0, 0);
  expect_team("the lsa of none", ncclTeamLsa(NULL), 0, 0, 0);
  EXPECT(ncclTeamRankToWorld(NULL, world, 0) == -1 && ncclTeamRankToLsa(NULL, world, 0) == -1, "a rank of none");
}

#define EXPECT_TWIN(result, name, parameters, arguments)            \
  EXPECT(dlsym(RTLD_DEFAULT, #name) != NULL, "there is no " #name); \
  EXPECT(dlsym(RTLD_DEFAULT, #name) == dlsym(RTLD_DEFAULT, "p" #name), "its twin is another than " #name);
static void twins(void) { NCCL_FUNCTIONS(EXPECT_TWIN) }

static void non_blocking(void) {
  ncclConfig_t open = config(0);
  ncclComm_t comm = NULL, part = NULL;
  BEGUN(comm, ncclCommInitRankConfig(&comm, ranks, share_id(), rank, &open));
  float in[1000], out[1000];
  fill(in, 1000);
  BEGUN(comm, ncclAllReduce(in, out, 1000, ncclFloat32, ncclMax, comm, NULL));
  for (size_t i = 0; i < 1000; ++i) EXPECT(out[i] == element(ranks - 1, i), "%zu: %g", i, (double)out[i]);
  MUST(ncclGroupStart());
  MUST(ncclSend(in, 1000, ncclFloat32, (rank + 1) % ranks, comm, NULL));
  MUST(ncclRecv(out, 1000, ncclFloat32, (rank + ranks - 1) % ranks, comm, NULL));
  BEGUN(comm, ncclGroupEnd());
  for (size_t i = 0; i < 1000; ++i) EXPECT(out[i] == element((rank + ranks - 1) % ranks, i), "%zu: %g", i, (double)out[i]);
  BEGUN(comm, ncclCommSplit(comm, 0, -rank, &part, &open));
  EXPECT(part != NULL, "no part");
  EXPECT(settled(part) == ncclSuccess, "%d", (int)settled(part));
  BEGUN(part, ncclReduce(in, out, 1000, ncclFloat32, ncclMin, 0, part, NULL));
  BEGUN(part, ncclCommFinalize(part));
  MUST(ncclCommDestroy(part));
  BEGUN(comm, ncclCommFinalize(comm));
  MUST(ncclCommDestroy(comm));
}

/* Rank 1 is waited for in vain. */
static void aborted_on_the_way(void) {
  if (rank == 1) return;
  ncclConfig_t open = config(0);
  ncclComm_t comm = NULL;
  const ncclUniqueId id = share_id();
  EXPECT(ncclCommInitRankConfig(&comm, ranks, id, rank, &open) == ncclInProgress, "done without rank 1");
  ncclResult_t state = ncclSuccess;
  MUST(ncclCommGetAsyncError(comm, &state));
  EXPECT(state == ncclInProgress, "%d", (int)state);
  EXPECT(ncclCommFinalize(comm) == ncclInvalidArgument, "finalized while it is made");
  MUST(ncclCommAbort(comm));
}

/* As PyTorch calls NCCL: a group that turns out to need another communicator is ended, and begun again when that is made. */
static void as_pytorch(void) {
  ncclComm_t comm = NULL, pair = NULL, none = (ncclComm_t)&rank;
  ncclConfig_t blocking = config(1);
  MUST(ncclCommInitRankConfig(&comm, ranks, share_id(), rank, &blocking));
  const ncclUniqueId id = next_id(comm);
  MUST(ncclCommSplit(comm, NCCL_SPLIT_NOCOLOR, rank, &none, &blocking));
  EXPECT(none == NULL, "%p", (void*)none);
  int sent = rank, received = -1;
  MUST(ncclGroupStart());
  MUST(ncclSend(&sent, 1, ncclInt32, (rank + 1) % ranks, comm, NULL));
  MUST(ncclRecv(&received, 1, ncclInt32, (rank + ranks - 1) % ranks, comm, NULL));
  MUST(ncclGroupEnd());
  MUST(ncclCommInitRankConfig(&pair, ranks, id, rank, &blocking));
  MUST(ncclGroupStart());
  EXPECT(received == (rank + ranks - 1) % ranks, "%d", received);
  MUST(ncclSend(&sent, 1, ncclInt32, (rank + ranks - 1) % ranks, pair, NULL));
  MUST(ncclRecv(&received, 1, ncclInt32, (rank + 1) % ranks, pair, NULL));
  MUST(ncclGroupEnd());
  EXPECT(received == (rank + 1) % ranks, "%d", received);
  check_sum(pair);
  MUST(ncclGroupStart());
  MUST(ncclCommAbort(pair));
  MUST(ncclCommAbort(comm));
  MUST(ncclGroupEnd());
}

int main(int count, char** words) {
  const Story stories[] = {{"everything", everything},
                           {"refused", refused},
                           {"twins", twins},
                           {"non_blocking", non_blocking},
                           {"as_pytorch", as_pytorch},
                           {"aborted_on_the_way", aborted_on_the_way},
                           {"wrongly_configured", wrongly_configured},
                           {"encryption", encryption},
                           {"kernels", kernels}};
  return tell(count, words, stories, sizeof stories / sizeof *stories);
}
