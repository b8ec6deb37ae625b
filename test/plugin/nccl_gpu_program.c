/* A rank of a program for NCCL whose buffers are a GPU's, one of the host's threads (host_cuda_calls.h), with NCCL's symbols left open, and
 * that GPU's: both are in the library that is loaded before it.
 *
 *     nccl-gpu-program STORY RANK RANKS FILE */
#define _DEFAULT_SOURCE /* usleep, clock_gettime */
#include <signal.h>

#include "test/plugin/host_cuda_calls.h"
#include "test/plugin/nccl_program.h"

#pragma weak host_cuda_stream
#pragma weak host_cuda_memory
#pragma weak host_cuda_done

enum { LARGE = 100003, GENEROUS_MS = 60000 };

static ncclComm_t comm;
static cudaStream_t stream, other;
static float *in, *out, *came;

static void join(void) {
  EXPECT(host_cuda_stream != NULL, "no GPU of the host's threads");
  MUST(ncclCommInitRank(&comm, ranks, share_id(), rank));
  stream = host_cuda_stream();
  other = host_cuda_stream();
  in = host_cuda_memory(LARGE * sizeof *in);
  out = host_cuda_memory(LARGE * sizeof *out);
  came = host_cuda_memory(LARGE * sizeof *came);
  fill(in, LARGE);
}

static void await(cudaStream_t given) { EXPECT(host_cuda_done(given, GENEROUS_MS), "a stream does not end"); }

static void check_sum(size_t count) {
  const float total = (float)(ranks * (ranks + 1) / 2);
  for (size_t i = 0; i < count; ++i) EXPECT(out[i] == total * element(0, i), "sum of %zu, element %zu: %g", count, i, (double)out[i]);
}

/* The sum of all is passed to the next rank, by another stream, in the communicator's order. */
static void sum_and_pass(size_t count) {
  const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
  MUST(ncclAllReduce(in, out, count, ncclFloat32, ncclSum, comm, stream));
  await(stream);
  check_sum(count);
  MUST(ncclGroupStart());
  MUST(ncclSend(in, count, ncclFloat32, next, comm, other));
  MUST(ncclRecv(came, count, ncclFloat32, last, comm, other));
  MUST(ncclGroupEnd());
  await(other);
  for (size_t i = 0; i < count; ++i) EXPECT(came[i] == element(last, i), "send/recv of %zu, element %zu: %g", count, i, (double)came[i]);
}

static void works(void) {
  join();
  const size_t counts[] = {1, 7, 1000, LARGE};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) sum_and_pass(counts[i]);
  MUST(ncclCommFinalize(comm));
  MUST(ncclCommDestroy(comm));
}

/* Rank 1 dies, and the others' streams are held until they give the communicator up; then they go on without it. */
static void killed(void) {
  join();
  sum_and_pass(LARGE);
  if (rank == 1) raise(SIGKILL);
  const ncclResult_t given = ncclAllReduce(in, out, LARGE, ncclFloat32, ncclSum, comm, stream);
  EXPECT(given == ncclSuccess || given == ncclRemoteError, "%d", (int)given); /* the death may have been seen already */
  ncclResult_t state = ncclSuccess;
  for (const double end = seconds() + 20; state == ncclSuccess && seconds() < end; usleep(1000)) MUST(ncclCommGetAsyncError(comm, &state));
  EXPECT(state == ncclRemoteError, "%d", (int)state);
  puts(ncclGetLastError(comm));
  EXPECT(given != ncclSuccess || !host_cuda_done(stream, 50), "a stream goes on behind a sum that has failed");
  ncclComm_t whole = comm;
  int without = 1;
  MUST(ncclCommShrink(whole, &without, 1, &comm, NULL, NCCL_SHRINK_ABORT));
  EXPECT(host_cuda_done(stream, 1000), "the stream is held");
  float *one = host_cuda_memory(sizeof *one), *sum = host_cuda_memory(sizeof *sum);
  *one = 1;
  MUST(ncclAllReduce(one, sum, 1, ncclFloat32, ncclSum, comm, other));
  await(other);
  EXPECT(*sum == (float)(ranks - 1), "%g", (double)*sum);
  MUST(ncclCommAbort(whole));
  MUST(ncclCommDestroy(comm));
}

int main(int count, char** words) {
  const Story stories[] = {{"works", works}, {"killed", killed}};
  return tell(count, words, stories, sizeof stories / sizeof *stories);
}
