/* A rank of a program that was written for NCCL, in C, with NCCL's symbols left open: whoever is loaded before it answers them.
 *
 *     nccl-program STORY RANK RANKS FILE       rank 0 puts the unique id into FILE, the others wait for it
 *
 * Exits with 0 if all was as the story wants it; else says what was not. */
#define _DEFAULT_SOURCE /* usleep, clock_gettime */
#include <signal.h>
#include <sys/wait.h>

#include "test/plugin/nccl_program.h"

static ncclComm_t join(void) {
  ncclComm_t comm = NULL;
  MUST(ncclCommInitRank(&comm, ranks, share_id(), rank));
  int count = -1, own = -1;
  MUST(ncclCommCount(comm, &count));
  MUST(ncclCommUserRank(comm, &own));
  EXPECT(count == ranks && own == rank, "rank %d of %d", own, count);
  return comm;
}

static void collectives(ncclComm_t comm, size_t count) {
  const size_t all = count * (size_t)ranks;
  float* in = malloc((all + 1) * sizeof *in);
  float* out = malloc((all + 1) * sizeof *out);
  const float total = (float)(ranks * (ranks + 1) / 2);
  fill(in, all);
  MUST(ncclAllReduce(in, out, count, ncclFloat32, ncclSum, comm, NULL));
  for (size_t i = 0; i < count; ++i)
    EXPECT(out[i] == total * element(0, i), "all-reduce of %zu, element %zu: %g", count, i, (double)out[i]);
  MUST(ncclAllGather(in, out, count, ncclFloat32, comm, NULL));
  for (size_t i = 0; i < all; ++i) EXPECT(out[i] == element((int)(i / count), i % count), "all-gather of %zu, element %zu", count, i);
  MUST(ncclReduceScatter(in, out, count, ncclFloat32, ncclMax, comm, NULL));
  for (size_t i = 0; i < count; ++i)
    EXPECT(out[i] == element(ranks - 1, (size_t)rank * count + i), "reduce-scatter of %zu, element %zu", count, i);
  MUST(ncclGroupStart());
  for (int peer = 0; peer < ranks; ++peer) {
    MUST(ncclSend(in, count, ncclFloat32, peer, comm, NULL));
    MUST(ncclRecv(out + (size_t)peer * count, count, ncclFloat32, peer, comm, NULL));
  }
  MUST(ncclGroupEnd());
  for (size_t i = 0; i < all; ++i) EXPECT(out[i] == element((int)(i / count), i % count), "send/recv of %zu, element %zu", count, i);
  MUST(ncclBroadcast(in, out, count, ncclFloat32, ranks - 1, comm, NULL));
  for (size_t i = 0; i < count; ++i) EXPECT(out[i] == element(ranks - 1, i), "broadcast of %zu, element %zu", count, i);
  free(in);
  free(out);
}

static void works(void) {
  ncclComm_t comm = join(), half = NULL;
  const size_t counts[] = {1, 7, 1000, 100003};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) collectives(comm, counts[i]);
  MUST(ncclCommSplit(comm, rank % 2, -rank, &half, NULL));
  float value = (float)rank, sum = 0, expected = 0;
  for (int r = rank % 2; r < ranks; r += 2) expected += (float)r;
  MUST(ncclAllReduce(&value, &sum, 1, ncclFloat32, ncclSum, half, NULL));
  EXPECT(sum == expected, "%g in place of %g", (double)sum, (double)expected);
  MUST(ncclCommDestroy(half));
  MUST(ncclCommFinalize(comm));
  MUST(ncclCommDestroy(comm));
}

/* Rank 1 dies among them, and leaves a child where it has one. */
static void dies(int has_child, double limit) {
  ncclComm_t comm = join();
  float data[1000];
  fill(data, 1000);
  MUST(ncclAllReduce(data, data, 1000, ncclFloat32, ncclMax, comm, NULL));
  if (rank == 1) {
    if (has_child && fork() == 0) sleep(10), _exit(0);
    raise(SIGKILL);
  }
  const double begin = seconds();
  const ncclResult_t result = ncclAllReduce(data, data, 1000, ncclFloat32, ncclSum, comm, NULL);
  EXPECT(result == ncclRemoteError, "%d", (int)result);
  EXPECT(seconds() - begin < limit, "%g s", seconds() - begin);
  ncclResult_t state = ncclSuccess;
  MUST(ncclCommGetAsyncError(comm, &state));
  EXPECT(state == ncclRemoteError, "%d", (int)state);
  puts(ncclGetLastError(comm));
  ncclComm_t rest = NULL;
  int without = 1;
  MUST(ncclCommShrink(comm, &without, 1, &rest, NULL, NCCL_SHRINK_ABORT));
  float one = 1, sum = 0;
  MUST(ncclAllReduce(&one, &sum, 1, ncclFloat32, ncclSum, rest, NULL));
  EXPECT(sum == (float)(ranks - 1), "%g", (double)sum);
  MUST(ncclCommAbort(comm));
  MUST(ncclCommDestroy(rest));
}

static void killed(void) { dies(0, 5); }
static void orphan(void) { dies(1, 2); }

/* Rank 0 calls something else than the others. */
static void mismatch(void) {
  ncclComm_t comm = join();
  float data[64];
  fill(data, 64);
  const ncclResult_t result = ncclAllReduce(data, data, rank == 0 ? 32 : 64, ncclFloat32, ncclSum, comm, NULL);
  EXPECT(result != ncclSuccess, "a sum of other counts");
  puts(ncclGetLastError(comm));
  MUST(ncclCommAbort(comm));
}

/* As data loaders do: children that call nothing, and end as programs end. */
static void child_of_nothing(ncclComm_t of_parent, const int* link) {
  (void)of_parent, (void)link;
  exit(0);
}

/* What was made before is the parent's alone, and it may make its own. */
static void child_of_its_own(ncclComm_t of_parent, const int* link) {
  (void)link;
  int count = 0;
  float one = 1, sum = 0;
  const ncclResult_t refused[] = {ncclCommCount(of_parent, &count), ncclAllReduce(&one, &sum, 1, ncclFloat32, ncclSum, of_parent, NULL),
                                  ncclCommFinalize(of_parent), ncclCommDestroy(of_parent), ncclCommAbort(of_parent)};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) EXPECT(refused[i] == ncclInvalidArgument, "%zu: %d", i, (int)refused[i]);
  EXPECT(strstr(ncclGetLastError(NULL), "forked") != NULL, "another error");
  ncclComm_t own = NULL;
  ncclUniqueId id;
  MUST(ncclGetUniqueId(&id));
  MUST(ncclCommInitRank(&own, 1, id, 0));
  MUST(ncclAllReduce(&one, &sum, 1, ncclFloat32, ncclSum, own, NULL));
  EXPECT(sum == 1, "%g", (double)sum);
  MUST(ncclCommDestroy(own));
  exit(0);
}

/* Two that make a communicator, which they don't destroy. The second leaves first, which is no death: the parent says when it has. */
static void child_of_two(int own, const int* link) {
  ncclComm_t comm = NULL;
  ncclUniqueId id;
  char gone = 0;
  float one = 1, sum = 0;
  if (own == 0) {
    MUST(ncclGetUniqueId(&id));
    EXPECT(write(link[1], &id, sizeof id) == (ssize_t)sizeof id, "no id is written");
  } else {
    EXPECT(read(link[0], &id, sizeof id) == (ssize_t)sizeof id, "no id is read");
  }
  MUST(ncclCommInitRank(&comm, 2, id, own));
  MUST(ncclAllReduce(&one, &sum, 1, ncclFloat32, ncclSum, comm, NULL));
  EXPECT(sum == 2, "%g", (double)sum);
  if (own == 1) exit(0);
  EXPECT(read(link[2], &gone, 1) == 1, "no word of the other");
  ncclResult_t state = ncclSuccess;
  for (const double end = seconds() + 0.5; state == ncclSuccess && seconds() < end; usleep(1000)) MUST(ncclCommGetAsyncError(comm, &state));
  EXPECT(state == ncclSuccess, "who leaves is taken for dead: %d", (int)state);
  exit(0);
}
static void first_of_two(ncclComm_t of_parent, const int* link) { (void)of_parent, child_of_two(0, link); }
static void second_of_two(ncclComm_t of_parent, const int* link) { (void)of_parent, child_of_two(1, link); }

static void forks(void) {
  ncclComm_t comm = join();
  void (*const children[])(ncclComm_t, const int*) = {child_of_nothing, child_of_its_own, first_of_two, second_of_two};
  pid_t started[4];
  int link[4]; /* two pipes: among the children, and to the first of two */
  EXPECT(pipe(link) == 0 && pipe(link + 2) == 0, "no pipes");
  for (int i = 0; i < 4; ++i) {
    started[i] = fork();
    if (started[i] == 0) children[i](comm, link);
    collectives(comm, 1000);
  }
  for (int i = 3; i >= 0; --i) {
    int status = -1;
    if (i == 2) EXPECT(write(link[3], "g", 1) == 1, "no word");
    EXPECT(waitpid(started[i], &status, 0) == started[i] && status == 0, "the status of child %d is %d", i, status);
    collectives(comm, 1000);
  }
  MUST(ncclCommDestroy(comm));
}

/* Ends without a word to gyre, and others of its ranks, too. */
static void leaves(void) { collectives(join(), 1000); }

/* As few calls as show who answers. */
static void who(void) {
  int version = 0;
  MUST(ncclGetVersion(&version));
  printf("version %d\n", version);
  ncclComm_t comm = NULL;
  ncclUniqueId id;
  memset(&id, 7, sizeof id);
  MUST(ncclCommInitRank(&comm, 1, id, 0));
  MUST(ncclGroupStart());
  MUST(ncclAllReduce(&version, &version, 1, ncclInt32, ncclSum, comm, NULL));
  MUST(ncclGroupEnd());
  MUST(ncclCommDestroy(comm));
  uint64_t value = 0;
  printf("memory %d, %s\n", (int)ncclCommMemStats(comm, ncclStatGpuMemTotal, &value), ncclGetErrorString(ncclSuccess));
}

int main(int count, char** words) {
  const Story stories[] = {{"works", works}, {"killed", killed}, {"orphan", orphan}, {"mismatch", mismatch},
                           {"forks", forks}, {"leaves", leaves}, {"who", who}};
  return tell(count, words, stories, sizeof stories / sizeof *stories);
}
