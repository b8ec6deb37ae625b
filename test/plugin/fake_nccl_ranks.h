/* What the fake NCCL's ranks share, and what they do with it: a file of which each maps the same pages. */
#pragma once
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NCCL_TYPES_ONLY
#include "plugin/abi/nccl.h"

enum { MOST_RANKS = 8, SLOT_BYTES = 1 << 16, BOX_BYTES = 4096, MOST_CALLS = 16, MOST_SUMS = 4 };

/* What the ranks share; all zero at first. Each counts its collectives: those whose input it has shown, and those it has ended. */
typedef struct {
  struct {
    atomic_uint shown, ended;
    char data[SLOT_BYTES];
  } slots[MOST_RANKS];
  struct {
    atomic_uint sent, received;
    char data[BOX_BYTES];
  } boxes[MOST_RANKS][MOST_RANKS]; /* [from][to] */
} Shared;

typedef struct FakeComm {
  Shared* shared;
  uint64_t number;
  int rank, ranks;
  unsigned calls, children;
  float sums[MOST_SUMS];     /* the scalars of pre-multiplied sums, from ncclNumOps on */
  int made_sums, ended_sums; /* a bit for each that was destroyed */
  int finalized;
  atomic_int pending, aborted; /* what streams have been given and not done; it is to end */
  atomic_int freed;            /* by whoever made it; kept, so that what comes after is seen */
  int in_background;           /* it does not block */
  atomic_int state, asked;     /* a ncclResult_t; how many threads ask for it just now */
  struct FakeComm* before;     /* of those kept */
} Comm;
static void await(const Comm* comm, const atomic_uint* counter, unsigned least) {
  const time_t end = time(NULL) + 60;
  while (atomic_load(counter) < least && !atomic_load(&comm->aborted)) {
    if (time(NULL) > end) fputs("fake NCCL: a rank did not come\n", stderr), _exit(3);
    sched_yield();
  }
}

static Shared* share(uint64_t number) {
  char name[4096];
  const char* folder = getenv("TEST_FAKE_FOLDER");
  snprintf(name, sizeof name, "%s/nccl-%llx", folder == NULL ? "/tmp" : folder, (unsigned long long)number);
  const int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, sizeof(Shared)) == 0) memory = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) perror(name), _exit(3);
  close(file);
  return memory;
}

static Comm* new_comm(uint64_t number, int rank, int ranks) {
  Comm* comm = calloc(1, sizeof *comm);
  *comm = (Comm){.shared = share(number), .number = number, .rank = rank, .ranks = ranks};
  return comm;
}

/* A collective in two halves, so that all ranks may be one thread's: shows its input, then takes the others'. */
static void show(Comm* comm, const void* input, size_t bytes) {
  if (bytes > SLOT_BYTES) fputs("fake NCCL: too many bytes\n", stderr), _exit(3);
  for (int rank = 0; rank < comm->ranks; ++rank) await(comm, &comm->shared->slots[rank].ended, comm->calls);
  memcpy(comm->shared->slots[comm->rank].data, input, bytes);
  atomic_store(&comm->shared->slots[comm->rank].shown, ++comm->calls);
}
static void await_shown(Comm* comm) {
  for (int rank = 0; rank < comm->ranks; ++rank) await(comm, &comm->shared->slots[rank].shown, comm->calls);
}
static void end(Comm* comm) { atomic_store(&comm->shared->slots[comm->rank].ended, comm->calls); }

typedef struct {
  enum { REDUCE, SEND, RECEIVE } kind;
  Comm* comm;
  const void* input;
  void* output;
  size_t count;
  int type, op, peer;
  cudaStream_t stream;
} Call;
static float scaled(const Call* call, float value) {
  return call->op < ncclNumOps ? value : value * call->comm->sums[call->op - ncclNumOps];
}

static void begin(const Call* call) {
  float scaled_input[SLOT_BYTES / sizeof(float)];
  const float* input = call->input;
  if (call->type == ncclFloat32) {
    for (size_t i = 0; i < call->count && i < SLOT_BYTES / sizeof(float); ++i) scaled_input[i] = scaled(call, input[i]);
    input = scaled_input;
  }
  show(call->comm, input, call->count * 4);
}
static void finish(const Call* call) {
  await_shown(call->comm);
  for (size_t i = 0; i < call->count && !atomic_load(&call->comm->aborted); ++i) {
    double sum = 0;
    for (int rank = 0; rank < call->comm->ranks; ++rank) {
      const char* slot = call->comm->shared->slots[rank].data;
      sum += call->type == ncclFloat32 ? (double)((const float*)slot)[i] : (double)((const int*)slot)[i];
    }
    if (call->type == ncclFloat32)
      ((float*)call->output)[i] = (float)sum;
    else
      ((int*)call->output)[i] = (int)sum;
  }
  end(call->comm);
}
static void transfer(const Call* call) {
  const int from = call->kind == SEND ? call->comm->rank : call->peer, to = call->kind == SEND ? call->peer : call->comm->rank;
  const size_t bytes = call->count * 4;
  if (call->kind == SEND) {
    const unsigned before = atomic_load(&call->comm->shared->boxes[from][to].sent);
    await(call->comm, &call->comm->shared->boxes[from][to].received, before);
    memcpy(call->comm->shared->boxes[from][to].data, call->input, bytes);
    atomic_store(&call->comm->shared->boxes[from][to].sent, before + 1);
  } else {
    const unsigned before = atomic_load(&call->comm->shared->boxes[from][to].received);
    await(call->comm, &call->comm->shared->boxes[from][to].sent, before + 1);
    memcpy(call->output, call->comm->shared->boxes[from][to].data, bytes);
    atomic_store(&call->comm->shared->boxes[from][to].received, before + 1);
  }
}
