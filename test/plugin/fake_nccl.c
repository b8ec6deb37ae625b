/* Plays a real NCCL, of a release that lacks many functions: says on stdout what it is asked, and does it on host memory, for few ranks and
 * small buffers. Ranks are processes or threads that share a file in TEST_FAKE_FOLDER. As NCCL it answers when all ranks have come, runs a
 * group at its end, and calls some of its own interface.
 *
 * What does not block it does in a thread, and may be asked by one thread at a time how far it is.
 *
 * TEST_FAKE_FAILS=1: the rank 1 of a communicator can't be made. TEST_FAKE_VERSION: of another release. TEST_FAKE_ID=full: its unique ids
 * leave no room.
 * TEST_FAKE_DIES=1: that of one that does not block dies when it is made. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>

#include "test/plugin/fake_nccl_hooks.h"
#include "test/plugin/fake_nccl_ranks.h"

#define FAKE __attribute__((visibility("default")))
#define SAY(...)                              \
  do {                                        \
    char line[256];                           \
    snprintf(line, sizeof line, __VA_ARGS__); \
    say(line);                                \
  } while (0)

static FakeNcclHooks hooks;
FAKE FakeNcclHooks* fake_nccl_hooks(void) { return &hooks; }
static void say(const char* line) {
  if (hooks.say != NULL)
    hooks.say(line);
  else
    printf("NCCL: %s\n", line), fflush(stdout);
}

typedef struct {
  uint64_t magic, number;
} FakeId;
static const uint64_t id_magic = 0x656b6166;
static Comm* of(ncclComm_t handle) {
  Comm* comm = (Comm*)handle;
  if (comm != NULL && atomic_load(&comm->freed)) fputs("fake NCCL: it is given a communicator that it has freed\n", stderr), _exit(3);
  return comm;
}

static int in_progress(const Comm* comm) { return atomic_load(&comm->state) == ncclInProgress; }
static void in_background(void* (*work)(void*), void* argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, argument) != 0) fputs("fake NCCL: no thread\n", stderr), _exit(3);
  pthread_detach(thread);
}

static _Thread_local int depth, calls, made;
static _Thread_local Call group[MOST_CALLS];
static _Thread_local ncclResult_t wrong; /* a call of the group was, and nothing of it is done */
typedef struct {
  ncclComm_t* at;
  Comm* comm;
} Birth;
static _Thread_local Birth births[MOST_CALLS];
static _Thread_local int registered;
static _Thread_local struct {
  ncclWindow_t* at;
  void* memory;
} windows[MOST_CALLS];

/* Sends first, then of each communicator the first collective, the second, …, then what is received. */
static void run_calls(const Call* all, int count) {
  unsigned char done[MOST_CALLS] = {0};
  for (int i = 0; i < count; ++i)
    if (all[i].kind == SEND) transfer(&all[i]);
  for (int left = 1; left;) {
    int round[MOST_CALLS], many = 0;
    for (int i = 0; i < count; ++i) {
      int taken = all[i].kind != REDUCE || done[i];
      for (int j = 0; j < many; ++j) taken |= all[round[j]].comm == all[i].comm;
      if (!taken) round[many++] = i;
    }
    for (int j = 0; j < many; ++j) begin(&all[round[j]]);
    for (int j = 0; j < many; ++j) finish(&all[round[j]]), done[round[j]] = 1;
    left = many;
  }
  for (int i = 0; i < count; ++i)
    if (all[i].kind == RECEIVE) transfer(&all[i]);
}

typedef struct {
  int count;
  Call calls[MOST_CALLS];
} Launch;
static void run_launch(void* argument) {
  Launch* launch = argument;
  run_calls(launch->calls, launch->count);
  for (int i = 0; i < launch->count; ++i) atomic_fetch_sub(&launch->calls[i].comm->pending, 1);
  free(launch);
}
static void launch_calls(Launch* launch) {
  cudaStream_t streams[MOST_CALLS];
  int many = 0;
  for (int i = 0; i < launch->count; ++i) {
    int known = 0;
    for (int j = 0; j < many; ++j) known |= streams[j] == launch->calls[i].stream;
    if (!known) streams[many++] = launch->calls[i].stream;
  }
  hooks.on_streams(streams, many, run_launch, launch);
}
/* Of one communicator, which is in progress meanwhile. */
static void* launch_late(void* argument) {
  Launch* launch = argument;
  Comm* comm = launch->calls[0].comm;
  hooks.launching(launch->calls[0].stream);
  launch_calls(launch);
  atomic_store(&comm->state, ncclSuccess);
  return NULL;
}
static ncclResult_t launch_group(void) {
  Launch* launch = malloc(sizeof *launch);
  launch->count = calls;
  for (int i = 0; i < calls; ++i) {
    launch->calls[i] = group[i];
    atomic_fetch_add(&group[i].comm->pending, 1);
  }
  const int late = hooks.launching != NULL && group[0].comm->in_background;
  if (!late) return launch_calls(launch), ncclSuccess;
  atomic_store(&group[0].comm->state, ncclInProgress);
  in_background(launch_late, launch);
  return ncclInProgress;
}
static ncclResult_t run_group(void) {
  ncclResult_t result = ncclSuccess;
  if (hooks.on_streams != NULL && calls > 0)
    result = launch_group();
  else
    run_calls(group, calls);
  calls = 0;
  return result;
}
static ncclResult_t call(Call one) {
  group[calls++] = one;
  return depth == 0 ? run_group() : ncclSuccess;
}

static void arrive_all(const Birth* all, int many) {
  for (int i = 0; i < many; ++i) show(all[i].comm, "", 1);
  for (int i = 0; i < many; ++i) await_shown(all[i].comm), end(all[i].comm);
}
static int fails(const Comm* comm) {
  const char* rank = getenv("TEST_FAKE_FAILS");
  return rank != NULL && atoi(rank) == comm->rank;
}
typedef struct {
  int count;
  Birth births[MOST_CALLS];
} Arrival;
static void* arrive_later(void* argument) {
  Arrival* arrival = argument;
  arrive_all(arrival->births, arrival->count);
  const char* dies = getenv("TEST_FAKE_DIES");
  if (dies != NULL && atoi(dies) == arrival->births[0].comm->rank) raise(SIGKILL);
  for (int i = 0; i < arrival->count; ++i) {
    Comm* comm = arrival->births[i].comm;
    atomic_store(&comm->state, fails(comm) ? ncclSystemError : ncclSuccess);
  }
  free(arrival);
  return NULL;
}
/* As NCCL has it all of a group block, or none. */
static ncclResult_t arrive(void) {
  const int many = made;
  made = 0;
  if (many == 0 || !births[0].comm->in_background) {
    arrive_all(births, many);
    for (int i = 0; i < many; ++i) *births[i].at = (ncclComm_t)births[i].comm;
    return ncclSuccess;
  }
  Arrival* arrival = malloc(sizeof *arrival);
  arrival->count = many;
  memcpy(arrival->births, births, sizeof births);
  for (int i = 0; i < many; ++i) atomic_store(&births[i].comm->state, ncclInProgress);
  in_background(arrive_later, arrival);
  return ncclInProgress;
}
static void place_windows(void) {
  for (int i = 0; i < registered; ++i) *windows[i].at = (ncclWindow_t)windows[i].memory;
  registered = 0;
}
static ncclResult_t birth(ncclComm_t* at, Comm* comm) {
  births[made].at = at;
  births[made++].comm = comm;
  if (comm->in_background) *at = (ncclComm_t)comm;
  const ncclResult_t result = depth == 0 ? arrive() : ncclSuccess;
  return !comm->in_background && fails(comm) ? ncclSystemError : result;
}

FAKE ncclResult_t ncclGetVersion(int* version) {
  const char* other = getenv("TEST_FAKE_VERSION");
  *version = other == NULL ? 21903 : atoi(other);
  SAY("ncclGetVersion");
  return ncclSuccess;
}
FAKE const char* ncclGetErrorString(ncclResult_t result) { return result == ncclSuccess ? "NCCL's own words" : "NCCL's error"; }
FAKE const char* ncclGetLastError(ncclComm_t comm) { return comm == NULL ? "" : "NCCL's last error"; }
/* Of a release that nobody knows yet. */
FAKE int ncclOfTomorrow(int day) { return day + 1; }

FAKE ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  FakeId made_id = {id_magic, 0};
  if (getrandom(&made_id.number, sizeof made_id.number, 0) < 0) return ncclSystemError;
  if (getenv("TEST_FAKE_ID") != NULL) memset(id, 'x', sizeof *id);
  memcpy(id, &made_id, sizeof made_id);
  SAY("ncclGetUniqueId");
  return ncclSuccess;
}
FAKE ncclResult_t pncclGetUniqueId(ncclUniqueId* id) __attribute__((alias("ncclGetUniqueId"))); /* an NCCL has twins */
static uint64_t number_of(const ncclUniqueId* id) {
  FakeId given;
  memcpy(&given, id, sizeof given);
  return given.magic == id_magic ? given.number : (uint64_t)getpid();
}
static void* idle(void* nothing) {
  pause();
  return nothing;
}
FAKE ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  SAY("ncclCommInitRank %d %d", ranks, rank);
  if (getenv("TEST_FAKE_THREADS") != NULL) in_background(idle, NULL);
  return birth(comm, new_comm(number_of(&id), rank, ranks));
}
FAKE ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  SAY("ncclCommInitRankConfig %d %d %d", ranks, rank, config == NULL ? 1 : config->blocking);
  Comm* own = new_comm(number_of(&id), rank, ranks);
  own->in_background = config != NULL && config->blocking == 0;
  return birth(comm, own);
}
FAKE ncclResult_t ncclGroupStart(void);
FAKE ncclResult_t ncclGroupEnd(void);
FAKE ncclResult_t ncclCommInitAll(ncclComm_t* comms, int ranks, const int* devices) {
  (void)devices;
  SAY("ncclCommInitAll %d", ranks);
  ncclUniqueId id;
  memset(&id, 0, sizeof id);
  ncclGetUniqueId(&id); /* by way of whoever has put his own before it, as NCCL does */
  if (id.internal[64] != 0) SAY("somebody has written into NCCL's own id");
  ncclGroupStart();
  for (int rank = 0; rank < ranks; ++rank) ncclCommInitRank(&comms[rank], ranks, id, rank);
  return ncclGroupEnd();
}
static Comm* _Atomic freed_comms; /* reached, so that they are no leak */
static ncclResult_t drop(Comm* comm) {
  while (atomic_load(&comm->pending) > 0 || in_progress(comm)) sched_yield();
  atomic_store(&comm->freed, 1);
  munmap(comm->shared, sizeof *comm->shared);
  comm->before = atomic_load(&freed_comms);
  while (!atomic_compare_exchange_weak(&freed_comms, &comm->before, comm)) continue;
  return ncclSuccess;
}
typedef struct {
  Comm* comm;
  int color, key;
  ncclComm_t* child;
} Split;
/* The parent's child, or NULL. */
static ncclResult_t split(const Split* asked, Comm** child) {
  Comm* comm = asked->comm;
  const int color = asked->color, key = asked->key, mine[2] = {color, key};
  int rank = 0, ranks = 0;
  show(comm, mine, sizeof mine);
  await_shown(comm);
  for (int other = 0; other < comm->ranks; ++other) {
    const int* theirs = (const int*)comm->shared->slots[other].data;
    ranks += theirs[0] == color;
    rank += theirs[0] == color && (theirs[1] < key || (theirs[1] == key && other < comm->rank));
  }
  end(comm);
  const uint64_t number = comm->number + 1000 * ++comm->children + (uint64_t)color;
  const int said = color >= 0 && hooks.splitting != NULL ? hooks.splitting(color) : ncclSuccess;
  if (said != ncclSuccess) return (ncclResult_t)said;
  *child = color < 0 ? NULL : new_comm(number, rank, ranks);
  return ncclSuccess;
}
/* The parent is in progress, and the child there when that is over. */
static void* split_later(void* argument) {
  Split* asked = argument;
  Birth born = {asked->child, NULL};
  const ncclResult_t result = split(asked, &born.comm);
  if (born.comm != NULL && atomic_load(&asked->comm->aborted)) drop(born.comm), born.comm = NULL;
  if (born.comm != NULL) born.comm->in_background = 1, arrive_all(&born, 1);
  *born.at = (ncclComm_t)born.comm;
  atomic_store(&asked->comm->state, result);
  free(asked);
  return NULL;
}
FAKE ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t* child, ncclConfig_t* config) {
  Comm *comm = of(handle), *born = NULL;
  (void)config;
  SAY("ncclCommSplit %d %d", color, key);
  if (in_progress(comm)) return ncclInvalidArgument;
  Split asked = {comm, color, key, child};
  if (!comm->in_background) {
    const ncclResult_t result = split(&asked, &born);
    return result != ncclSuccess || born == NULL ? result : birth(child, born);
  }
  *child = NULL;
  atomic_store(&comm->state, ncclInProgress);
  in_background(split_later, memcpy(malloc(sizeof asked), &asked, sizeof asked));
  return ncclSuccess; /* as 2.28 does */
}
FAKE ncclResult_t ncclCommShrink(ncclComm_t handle, int* without, int count, ncclComm_t* rest, ncclConfig_t* config, int flags) {
  Comm* comm = of(handle);
  (void)config;
  SAY("ncclCommShrink %d %d", count, flags);
  int rank = comm->rank;
  for (int i = 0; i < count; ++i) rank -= without[i] < comm->rank;
  return birth(rest, new_comm(comm->number + 77, rank, comm->ranks - count));
}
FAKE ncclResult_t ncclCommCount(ncclComm_t handle, int* count) { return *count = of(handle)->ranks, ncclSuccess; }
FAKE ncclResult_t ncclCommCuDevice(ncclComm_t handle, int* device) { return *device = of(handle)->rank, ncclSuccess; }
FAKE ncclResult_t ncclCommUserRank(ncclComm_t handle, int* rank) { return *rank = of(handle)->rank, ncclSuccess; }
FAKE ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  Comm* comm = of(handle);
  if (comm->in_background && atomic_fetch_add(&comm->asked, 1) > 0) fputs("fake NCCL: two threads ask at a time\n", stderr), _exit(3);
  *error = (ncclResult_t)atomic_load(&comm->state);
  if (comm->in_background) atomic_fetch_sub(&comm->asked, 1);
  return ncclSuccess;
}
FAKE ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  Comm* comm = of(handle);
  SAY("ncclCommFinalize %d", comm->rank);
  while (atomic_load(&comm->pending) > 0) sched_yield();
  comm->finalized = 1;
  return ncclSuccess;
}
FAKE ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* memory, size_t bytes, ncclWindow_t* window, int flags) {
  of(comm), (void)flags;
  SAY("ncclCommWindowRegister %zu", bytes);
  windows[registered].at = window;
  windows[registered++].memory = hooks.has_no_windows ? NULL : memory;
  if (depth == 0) place_windows();
  return ncclSuccess;
}
FAKE ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  of(comm), (void)window;
  SAY("ncclCommWindowDeregister");
  return ncclSuccess;
}
FAKE ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  Comm* comm = of(handle);
  SAY("ncclCommDestroy %d", comm->rank);
  return in_progress(comm) ? ncclInvalidArgument : drop(comm);
}
FAKE ncclResult_t ncclCommAbort(ncclComm_t handle) {
  Comm* comm = of(handle);
  SAY("ncclCommAbort %d", comm->rank);
  atomic_store(&comm->aborted, 1);
  return drop(comm);
}

FAKE ncclResult_t ncclGroupStart(void) {
  SAY("ncclGroupStart");
  ++depth;
  return ncclSuccess;
}
FAKE ncclResult_t ncclGroupEnd(void) {
  SAY("ncclGroupEnd");
  if (depth == 0) return ncclInvalidUsage;
  if (--depth > 0) return ncclSuccess;
  const ncclResult_t result = wrong;
  wrong = ncclSuccess;
  for (int i = 0; i < calls; ++i) of((ncclComm_t)group[i].comm);
  if (result != ncclSuccess) calls = registered = 0;
  while (result != ncclSuccess && made > 0) drop(births[--made].comm);
  const ncclResult_t launched = run_group(), arrived = arrive();
  place_windows();
  return result != ncclSuccess ? result : launched != ncclSuccess ? launched : arrived;
}
FAKE ncclResult_t ncclAllReduce(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t handle,
                                cudaStream_t stream) {
  Comm* comm = of(handle);
  if (comm == NULL) return depth == 0 ? ncclInvalidArgument : (wrong = ncclInvalidArgument);
  SAY("ncclAllReduce %d %zu %d %d %d %d", input == output, count, (int)type, (int)op, comm->rank, stream == NULL);
  if (in_progress(comm)) return depth == 0 ? ncclInvalidArgument : (wrong = ncclInvalidArgument);
  const int sum_ended = op >= ncclNumOps && (comm->ended_sums >> (op - ncclNumOps) & 1) != 0;
  if ((count > 0 && input == NULL) || sum_ended || comm->finalized) return depth == 0 ? ncclInvalidArgument : (wrong = ncclInvalidArgument);
  return call((Call){REDUCE, comm, input, output, count, (int)type, (int)op, 0, stream});
}
FAKE ncclResult_t ncclSend(const void* input, size_t count, ncclDataType_t type, int peer, ncclComm_t handle, cudaStream_t stream) {
  Comm* comm = of(handle);
  SAY("ncclSend %zu %d", count, peer);
  return call((Call){SEND, comm, input, NULL, count, (int)type, 0, peer, stream});
}
FAKE ncclResult_t ncclRecv(void* output, size_t count, ncclDataType_t type, int peer, ncclComm_t handle, cudaStream_t stream) {
  Comm* comm = of(handle);
  SAY("ncclRecv %zu %d", count, peer);
  return call((Call){RECEIVE, comm, NULL, output, count, (int)type, 0, peer, stream});
}
FAKE ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t residence,
                                           ncclComm_t handle) {
  Comm* comm = of(handle);
  SAY("ncclRedOpCreatePreMulSum %d %d", (int)type, (int)residence);
  if (comm->made_sums == MOST_SUMS) return ncclInternalError;
  memcpy(&comm->sums[comm->made_sums], scalar, sizeof(float));
  *op = (ncclRedOp_t)(ncclNumOps + comm->made_sums++);
  return ncclSuccess;
}
FAKE ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t handle) {
  of(handle)->ended_sums |= 1 << (op - ncclNumOps);
  SAY("ncclRedOpDestroy %d", (int)op);
  return ncclSuccess;
}

/* Collectives with a configuration say all that they are given; a sum is done, too. */
#define SAY_CONFIGURED(name, op, root)                                                                                                 \
  SAY(#name " %p %p %zu %d %d %d %d %d %d", input, output, count, (int)type, (int)(op), (int)(root), of(handle)->rank, stream == NULL, \
      config->maxCTAs)
FAKE ncclResult_t ncclAllReduceConfig(const void* input, void* output, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t handle,
                                      cudaStream_t stream, const ncclCollConfig_t* config) {
  SAY_CONFIGURED(ncclAllReduceConfig, op, -1);
  return call((Call){REDUCE, of(handle), input, output, count, (int)type, (int)op, 0, stream});
}
#define DATA const void *input, void *output, size_t count, ncclDataType_t type
#define PLACE ncclComm_t handle, cudaStream_t stream, const ncclCollConfig_t *config
#define CONFIGURED(name, parameters, op, root) \
  FAKE ncclResult_t name parameters {          \
    SAY_CONFIGURED(name, op, root);            \
    return ncclSuccess;                        \
  }
CONFIGURED(ncclBroadcastConfig, (DATA, int root, PLACE), -1, root)
CONFIGURED(ncclReduceConfig, (DATA, ncclRedOp_t op, int root, PLACE), op, root)
CONFIGURED(ncclAllGatherConfig, (DATA, PLACE), -1, -1)
CONFIGURED(ncclReduceScatterConfig, (DATA, ncclRedOp_t op, PLACE), op, -1)
CONFIGURED(ncclAlltoAllConfig, (DATA, PLACE), -1, -1)
CONFIGURED(ncclGatherConfig, (DATA, int root, PLACE), -1, root)
CONFIGURED(ncclScatterConfig, (DATA, int root, PLACE), -1, root)
FAKE ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t* config) {
  SAY("ncclSetEncryption %d", config->mode);
  return ncclSuccess;
}

/* Of the interface for kernels; there is no ncclTeamRail. */
FAKE ncclTeam_t ncclTeamLsa(ncclComm_t handle) { return (ncclTeam_t){of(handle)->ranks + 10, of(handle)->rank + 20, 30}; }
FAKE int ncclTeamRankToLsa(ncclComm_t handle, ncclTeam_t team, int rank) {
  SAY("ncclTeamRankToLsa %d %d %d %d", team.nRanks, team.rank, team.stride, rank);
  return of(handle)->rank + 40;
}
FAKE ncclResult_t ncclGetMultimemDevicePointer(ncclWindow_t window, size_t offset, ncclMultimemHandle_t handle, void** memory) {
  SAY("ncclGetMultimemDevicePointer %d %zu", window == NULL, offset);
  *memory = handle.mcBasePtr;
  return ncclSuccess;
}
