/* Plays a real NCCL, of a release that lacks most functions: says on stdout what it is asked. */
#include <stdio.h>
#include <stdlib.h>

#include "plugin/abi/nccl_types.h"

#define FAKE __attribute__((visibility("default")))

FAKE ncclResult_t ncclGetVersion(int* version) {
  *version = 21903;
  puts("NCCL: ncclGetVersion");
  return ncclSuccess;
}
FAKE const char* ncclGetErrorString(ncclResult_t result) { return result == ncclSuccess ? "NCCL's own words" : "NCCL's error"; }
FAKE const char* ncclGetLastError(void* comm) { return comm == NULL ? "" : "NCCL's last error"; }

typedef struct {
  char internal[128];
} FakeId;
FAKE ncclResult_t ncclCommInitRank(void** comm, int ranks, FakeId id, int rank) {
  *comm = (void*)0x4711;
  printf("NCCL: ncclCommInitRank %d %d %d\n", ranks, id.internal[127], rank);
  return ncclSuccess;
}
FAKE ncclResult_t ncclGroupStart(void) {
  puts("NCCL: ncclGroupStart");
  return ncclSuccess;
}
FAKE ncclResult_t ncclGroupEnd(void) {
  puts("NCCL: ncclGroupEnd");
  return ncclSuccess;
}
FAKE ncclResult_t ncclAllReduce(const void* input, void* output, size_t count, int type, int op, void* comm, void* stream) {
  printf("NCCL: ncclAllReduce %d %zu %d %d %p %d\n", input == output, count, type, op, comm, stream == NULL);
  return ncclSuccess;
}
FAKE ncclResult_t ncclCommDestroy(void* comm) {
  printf("NCCL: ncclCommDestroy %p\n", comm);
  return ncclSuccess;
}
