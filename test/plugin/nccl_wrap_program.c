/* A rank of a program for NCCL that runs with a real NCCL (a fake one) and gyre before it. What the fake says of itself on stdout shows
 * what came to NCCL; lines that begin with -- say what the program does next.
 *
 *     nccl-wrap-program STORY RANK RANKS FILE */
#define _DEFAULT_SOURCE /* usleep, clock_gettime */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "test/plugin/nccl_program.h"

int ncclOfTomorrow(int day) __attribute__((weak)); /* of no release that gyre knows */

enum { LARGE = 1000, SMALL = 1 };

static void step(const char* name) { printf("-- %s\n", name), fflush(stdout); }

/* TEST_SECOND_NCCL: the file of a copy of NCCL that the program brings, too. */
static ncclComm_t join(void) {
  const char* second = getenv("TEST_SECOND_NCCL");
  EXPECT(second == NULL || dlopen(second, RTLD_NOW) != NULL, "%s", second);
  ncclComm_t comm = NULL;
  const double begin = seconds();
  MUST(ncclCommInitRank(&comm, ranks, share_id(), rank));
  printf("joined in %.3f\n", seconds() - begin);
  return comm;
}

static void check_sum(const float* out, size_t count, float factor) {
  const float total = factor * (float)(ranks * (ranks + 1) / 2);
  for (size_t i = 0; i < count; ++i) EXPECT(out[i] == total * element(0, i), "sum of %zu, element %zu: %g", count, i, (double)out[i]);
}

static void sum(ncclComm_t comm, size_t count) {
  float in[LARGE], out[LARGE] = {0};
  fill(in, count);
  MUST(ncclAllReduce(in, out, count, ncclFloat32, ncclSum, comm, NULL));
  check_sum(out, count, 1);
}

static void premultiplied(ncclComm_t comm) {
  float in[LARGE], out[LARGE] = {0}, three = 3;
  ncclRedOp_t op = ncclSum;
  fill(in, LARGE);
  MUST(ncclRedOpCreatePreMulSum(&op, &three, ncclFloat32, ncclScalarHostImmediate, comm));
  three = 4;
  MUST(ncclAllReduce(in, out, LARGE, ncclFloat32, op, comm, NULL));
  check_sum(out, LARGE, 3);
  MUST(ncclRedOpDestroy(op, comm));
}

/* Two sums, of these sizes. */
static void group(ncclComm_t comm, size_t first, size_t second) {
  float in[LARGE], out[LARGE] = {0}, in_place[LARGE];
  fill(in, LARGE);
  fill(in_place, LARGE);
  MUST(ncclGroupStart());
  MUST(ncclAllReduce(in, out, first, ncclFloat32, ncclSum, comm, NULL));
  MUST(ncclAllReduce(in_place, in_place, second, ncclFloat32, ncclSum, comm, NULL));
  MUST(ncclGroupEnd());
  check_sum(out, first, 1);
  check_sum(in_place, second, 1);
}

/* Rank 0 sends to rank 1 in a group of two sums, which the others have, too. */
static void mixed_group(ncclComm_t comm) {
  float in[LARGE], out[LARGE] = {0}, in_place[LARGE], message = 0;
  fill(in, LARGE);
  fill(in_place, LARGE);
  MUST(ncclGroupStart());
  MUST(ncclAllReduce(in, out, LARGE, ncclFloat32, ncclSum, comm, NULL));
  MUST(ncclAllReduce(in_place, in_place, LARGE / 2, ncclFloat32, ncclSum, comm, NULL));
  if (rank == 0) MUST(ncclSend(&in[5], 1, ncclFloat32, 1, comm, NULL));
  if (rank == 1) MUST(ncclRecv(&message, 1, ncclFloat32, 0, comm, NULL));
  MUST(ncclGroupEnd());
  check_sum(out, LARGE, 1);
  check_sum(in_place, LARGE / 2, 1);
  EXPECT(rank != 1 || message == element(0, 5), "%g", (double)message);
}

/* Rank 0 sends to rank 1 in the group of a sum; the others have no group. */
static void mixed(ncclComm_t comm) {
  float in[LARGE], out[LARGE] = {0}, message = 0;
  fill(in, LARGE);
  if (rank < 2) MUST(ncclGroupStart());
  MUST(ncclAllReduce(in, out, LARGE, ncclFloat32, ncclSum, comm, NULL));
  if (rank == 0) MUST(ncclSend(&in[5], 1, ncclFloat32, 1, comm, NULL));
  if (rank == 1) MUST(ncclRecv(&message, 1, ncclFloat32, 0, comm, NULL));
  if (rank < 2) MUST(ncclGroupEnd());
  check_sum(out, LARGE, 1);
  EXPECT(rank != 1 || message == element(0, 5), "%g", (double)message);
}

static void takes(void) {
  ncclComm_t comm = join();
  float out[LARGE];
  step("small"), sum(comm, SMALL);
  step("large"), sum(comm, LARGE);
  step("premultiplied"), premultiplied(comm);
  step("group"), group(comm, LARGE, LARGE / 2);
  step("group with a small one"), group(comm, LARGE, SMALL);
  step("group with a small one first"), group(comm, SMALL, LARGE);
  step("mixed"), mixed(comm);
  step("mixed group"), mixed_group(comm);
  step("wrong");
  EXPECT(ncclAllReduce(NULL, out, LARGE, ncclFloat32, ncclSum, comm, NULL) == ncclInvalidArgument, "a sum of NULL");
  EXPECT(strcmp(ncclGetLastError(comm), "NCCL's last error") == 0, "%s", ncclGetLastError(comm));
  step("large again"), sum(comm, LARGE);
  ncclResult_t state = ncclInternalError;
  MUST(ncclCommGetAsyncError(comm, &state));
  EXPECT(state == ncclSuccess, "%d", (int)state);
  EXPECT(ncclOfTomorrow != NULL && ncclOfTomorrow(1) == 2, "a later function");
  step("end");
  MUST(ncclCommDestroy(comm));
}

/* Whoever runs it, and whatever the others have. */
static void plain(void) {
  ncclComm_t comm = join();
  step("large"), sum(comm, LARGE);
  step("end");
  MUST(ncclCommDestroy(comm));
}

static ncclCollConfig_t collective_config(int most) {
  const int open = NCCL_CONFIG_UNDEF_INT;
  return (ncclCollConfig_t){sizeof(ncclCollConfig_t), NCCL_CONFIG_MAGIC, 23200, NULL, open, most, open, open, NULL, 1, open, 0, NULL};
}

/* Collectives without a configuration of their own, as these are; the sum is checked. */
static void unconfigured(ncclComm_t comm, const float* in, float* out) {
  const size_t count = LARGE / 10;
  MUST(ncclAllReduceConfig(in, out, count, ncclFloat32, ncclSum, comm, NULL, NULL));
  check_sum(out, count, 1);
  MUST(ncclBroadcastConfig(in, out, count, ncclFloat32, 1, comm, NULL, NULL));
  MUST(ncclReduceConfig(in, out, count, ncclFloat32, ncclSum, 1, comm, NULL, NULL));
  MUST(ncclAllGatherConfig(in, out, count, ncclFloat32, comm, NULL, NULL));
  MUST(ncclReduceScatterConfig(in, out, count, ncclFloat32, ncclSum, comm, NULL, NULL));
  MUST(ncclAlltoAllConfig(in, out, count, ncclFloat32, comm, NULL, NULL));
  MUST(ncclGatherConfig(in, out, count, ncclFloat32, 1, comm, NULL, NULL));
  MUST(ncclScatterConfig(in, out, count, ncclFloat32, 1, comm, NULL, NULL));
}

/* Says what NCCL is to be asked, and calls it. */
#define EXPECTED(name, op, root, ...)                                                                                                     \
  printf("expected: " #name " %p %p %zu %d %d %d %d 1 %d\n", (const void*)in, (void*)out, count, (int)ncclFloat32, op, root, rank, most); \
  fflush(stdout);                                                                                                                         \
  MUST(name(in, out, count, ncclFloat32, __VA_ARGS__, NULL, &config))
static void all_configured(ncclComm_t comm, const float* in, float* out) {
  int most = 7;
  size_t count = LARGE;
  ncclCollConfig_t config = collective_config(most);
  EXPECTED(ncclAllReduceConfig, ncclSum, -1, ncclSum, comm);
  check_sum(out, count, 1);
  config.maxCTAs = most = 10, count = 20;
  EXPECTED(ncclBroadcastConfig, -1, 1, 1, comm);
  config.maxCTAs = most = 11, count = 21;
  EXPECTED(ncclReduceConfig, ncclMax, 1, ncclMax, 1, comm);
  config.maxCTAs = most = 12, count = 22;
  EXPECTED(ncclAllGatherConfig, -1, -1, comm);
  config.maxCTAs = most = 13, count = 23;
  EXPECTED(ncclReduceScatterConfig, ncclMax, -1, ncclMax, comm);
  config.maxCTAs = most = 14, count = 24;
  EXPECTED(ncclAlltoAllConfig, -1, -1, comm);
  config.maxCTAs = most = 15, count = 25;
  EXPECTED(ncclGatherConfig, -1, 1, 1, comm);
  config.maxCTAs = most = 16, count = 26;
  EXPECTED(ncclScatterConfig, -1, 1, 1, comm);
}

static void configured(void) {
  ncclComm_t comm = join();
  float in[LARGE * 2], out[LARGE * 2];
  fill(in, LARGE * 2);
  step("without a configuration"), unconfigured(comm, in, out);
  step("configured"), all_configured(comm, in, out);
  step("large"), sum(comm, LARGE);
  step("end");
  MUST(ncclCommDestroy(comm));
}

/* NCCL's teams and memory for a program's own kernels. */
static void kernels(void) {
  ncclComm_t comm = join();
  const ncclTeam_t lsa = ncclTeamLsa(comm), rail = ncclTeamRail(comm);
  EXPECT(lsa.nRanks == ranks + 10 && lsa.rank == rank + 20 && lsa.stride == 30, "%d, %d, %d", lsa.nRanks, lsa.rank, lsa.stride);
  EXPECT(rail.nRanks == 0 && rail.rank == 0 && rail.stride == 0, "%d, %d, %d", rail.nRanks, rail.rank, rail.stride);
  EXPECT(ncclTeamRankToLsa(comm, lsa, 5) == rank + 40, "%d", ncclTeamRankToLsa(comm, lsa, 5));
  EXPECT(ncclTeamRankToWorld(comm, lsa, 5) == 0, "%d", ncclTeamRankToWorld(comm, lsa, 5));
  EXPECT(ncclDevCommCreate(comm, NULL, NULL) == ncclInvalidUsage, "a function that it lacks");
  void* memory = NULL;
  MUST(ncclGetMultimemDevicePointer(NULL, 6, (ncclMultimemHandle_t){&comm}, &memory));
  EXPECT(memory == &comm, "%p", memory);
  step("end");
  MUST(ncclCommDestroy(comm));
}

static void encrypted(void) {
  const ncclEncryptionConfig_t by_key = {sizeof by_key, NCCL_CONFIG_MAGIC, 23200, NCCL_ENCRYPTION_MODE_PSK, "a key that is long enough"};
  MUST(ncclSetEncryption(&by_key));
  plain();
}

static ncclResult_t settled(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  for (const double end = seconds() + 30; state == ncclInProgress && seconds() < end; usleep(1000))
    MUST(ncclCommGetAsyncError(comm, &state));
  return state;
}

static ncclComm_t begin_in_background(void) {
  ncclConfig_t config;
  memset(&config, 0, sizeof config);
  config.size = 24; /* as of 2.14 */
  config.magic = NCCL_CONFIG_MAGIC;
  config.version = 21400;
  ncclComm_t comm = NULL;
  const ncclUniqueId id = share_id();
  const double begin = seconds();
  EXPECT(ncclCommInitRankConfig(&comm, ranks, id, rank, &config) == ncclInProgress, "it does not begin");
  EXPECT(seconds() - begin < 0.5, "it has taken %g s to begin", seconds() - begin);
  return comm;
}
static ncclComm_t join_in_background(void) {
  ncclComm_t comm = begin_in_background();
  EXPECT(settled(comm) == ncclSuccess, "it is not made");
  return comm;
}

static void does_not_block(void) {
  ncclComm_t comm = join_in_background(), half = NULL;
  step("large"), sum(comm, LARGE);
  step("half");
  ncclResult_t begun = ncclCommSplit(comm, rank % 2, 0, &half, NULL);
  EXPECT(begun == ncclSuccess || begun == ncclInProgress, "%d", (int)begun);
  EXPECT(settled(comm) == ncclSuccess, "it is not split");
  float value = 1, total = 0;
  MUST(ncclAllReduce(&value, &total, 1, ncclFloat32, ncclSum, half, NULL));
  EXPECT(total == (float)((ranks + 1 - rank % 2) / 2), "%g", (double)total);
  step("end");
  MUST(ncclCommDestroy(half));
  begun = ncclCommFinalize(comm);
  EXPECT(begun == ncclSuccess || begun == ncclInProgress, "%d", (int)begun);
  EXPECT(settled(comm) == ncclSuccess, "it is not finalized");
  MUST(ncclCommDestroy(comm));
}

/* While it is made the process forks, as data loaders do, and then ends, as both do then. */
static void leaves(void) {
  begin_in_background();
  usleep(100000); /* as a rule the ranks vote by then */
  const pid_t child = fork();
  if (child == 0) exit(0);
  int state = -1;
  EXPECT(waitpid(child, &state, 0) == child && state == 0, "the child has ended with %d", state);
}

/* TEST_FAKE_DIES: of that rank NCCL's part is made, and then it is dead. */
static void loses_one(void) {
  ncclComm_t comm = join_in_background();
  step("abort");
  MUST(ncclCommAbort(comm));
}

static void parts(void) {
  ncclComm_t comm = join(), half = NULL, none = NULL, rest = NULL;
  MUST(ncclCommSplit(comm, rank % 2, -rank, &half, NULL));
  step("half");
  float value = (float)rank, total = 0, expected = 0;
  for (int r = rank % 2; r < ranks; r += 2) expected += (float)r;
  MUST(ncclAllReduce(&value, &total, 1, ncclFloat32, ncclSum, half, NULL));
  EXPECT(total == expected, "%g in place of %g", (double)total, (double)expected);
  step("none");
  MUST(ncclCommSplit(comm, rank == 0 ? NCCL_SPLIT_NOCOLOR : 0, 0, &none, NULL));
  EXPECT((none == NULL) == (rank == 0), "%p", (void*)none);
  if (rank != 1) {
    int without = 1;
    step("rest");
    MUST(ncclCommShrink(comm, &without, 1, &rest, NULL, NCCL_SHRINK_DEFAULT));
    MUST(ncclAllReduce(&value, &total, 1, ncclFloat32, ncclSum, rest, NULL));
    EXPECT(total == (float)(ranks * (ranks - 1) / 2 - 1), "%g", (double)total);
    MUST(ncclCommDestroy(rest));
  }
  step("end"), sum(comm, LARGE);
  if (none != NULL) MUST(ncclCommDestroy(none));
  MUST(ncclCommDestroy(half));
  MUST(ncclCommDestroy(comm));
}

static ncclComm_t comms[2];
static void* by_thread(void* which) {
  const int own = *(int*)which;
  float in[LARGE], out[LARGE];
  for (size_t i = 0; i < LARGE; ++i) in[i] = element(own, i);
  MUST(ncclAllReduce(in, out, LARGE, ncclFloat32, ncclSum, comms[own], NULL));
  check_sum(out, LARGE, 1);
  return NULL;
}

/* Both ranks are this process's. */
static void all_here(void) {
  float in[2][LARGE], out[2][LARGE] = {{0}};
  ranks = 2;
  MUST(ncclCommInitAll(comms, 2, NULL));
  step("group");
  MUST(ncclGroupStart());
  for (rank = 0; rank < 2; ++rank) {
    fill(in[rank], LARGE);
    MUST(ncclAllReduce(in[rank], out[rank], LARGE, ncclFloat32, ncclSum, comms[rank], NULL));
  }
  MUST(ncclGroupEnd());
  for (rank = 0; rank < 2; ++rank) check_sum(out[rank], LARGE, 1);
  step("threads");
  pthread_t thread;
  int own[2] = {0, 1};
  EXPECT(pthread_create(&thread, NULL, by_thread, &own[1]) == 0, "a thread");
  by_thread(&own[0]);
  pthread_join(thread, NULL);
  step("end");
  for (rank = 0; rank < 2; ++rank) MUST(ncclCommDestroy(comms[rank]));
}

static void* abort_soon(void* comm) {
  usleep(50000); /* as a rule the call waits by then; what is tested holds in any case */
  MUST(ncclCommAbort(comm));
  return NULL;
}

/* Rank 1 stays away from a call, and rank 0 gives up. */
static void aborted(void) {
  ncclComm_t comm = join();
  sum(comm, LARGE);
  if (rank == 0) {
    pthread_t thread;
    float data[LARGE];
    fill(data, LARGE);
    EXPECT(pthread_create(&thread, NULL, abort_soon, comm) == 0, "a thread");
    const double begin = seconds();
    EXPECT(ncclAllReduce(data, data, LARGE, ncclFloat32, ncclSum, comm, NULL) != ncclSuccess, "a sum without the others");
    EXPECT(seconds() - begin < 1, "%g s", seconds() - begin);
    pthread_join(thread, NULL);
    return;
  }
  ncclResult_t state = ncclSuccess;
  for (const double end = seconds() + 20; state == ncclSuccess && seconds() < end; usleep(1000)) MUST(ncclCommGetAsyncError(comm, &state));
  EXPECT(state == ncclRemoteError, "%d", (int)state);
  MUST(ncclCommAbort(comm));
}

static void killed(void) {
  ncclComm_t comm = join();
  sum(comm, LARGE);
  if (rank == 1) raise(SIGKILL);
  float data[LARGE];
  fill(data, LARGE);
  const ncclResult_t result = ncclAllReduce(data, data, LARGE, ncclFloat32, ncclSum, comm, NULL);
  EXPECT(result == ncclRemoteError, "%d", (int)result);
  puts(ncclGetLastError(comm));
  MUST(ncclCommAbort(comm));
}

/* NCCL can't make rank 1's. */
static void fails(void) {
  static ncclComm_t comm; /* of a group is written at its end */
  const ncclResult_t result = ncclCommInitRank(&comm, ranks, share_id(), rank);
  EXPECT(result == (rank == 1 ? ncclSystemError : ncclSuccess), "%d", (int)result);
}

/* As NCCL refuses what it has not recorded yet: its group goes on. */
static void fails_in_a_group(void) {
  MUST(ncclGroupStart());
  fails();
  MUST(ncclGroupEnd());
}

int main(int count, char** words) {
  const Story stories[] = {{"takes", takes},
                           {"plain", plain},
                           {"does_not_block", does_not_block},
                           {"loses_one", loses_one},
                           {"leaves", leaves},
                           {"parts", parts},
                           {"all_here", all_here},
                           {"aborted", aborted},
                           {"killed", killed},
                           {"fails", fails},
                           {"fails_in_a_group", fails_in_a_group},
                           {"configured", configured},
                           {"encrypted", encrypted},
                           {"kernels", kernels}};
  return tell(count, words, stories, sizeof stories / sizeof *stories);
}
