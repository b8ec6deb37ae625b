/* Plays a real NCCL that knows no communicators but its own, and calls its own interface, as NCCL does: in the calling thread, and in one
 * of its own. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NCCL_TYPES_ONLY
#include "plugin/abi/nccl.h"

#define FAKE __attribute__((visibility("default")))

static char here;
typedef struct {
  const char* made_here;
  int ranks, rank;
} InnerComm;

FAKE ncclResult_t ncclGetVersion(int* version) { return *version = 22809, ncclSuccess; }
FAKE const char* ncclGetErrorString(ncclResult_t result) { return result == ncclSuccess ? "fine" : "wrong"; }
FAKE const char* ncclGetLastError(ncclComm_t comm) { return (void)comm, ""; }
FAKE ncclResult_t ncclGetUniqueId(ncclUniqueId* id) { return memset(id, 0, sizeof *id), ncclSuccess; }
FAKE ncclResult_t pncclGetUniqueId(ncclUniqueId* id) __attribute__((alias("ncclGetUniqueId")));
FAKE ncclResult_t ncclCommInitRank(ncclComm_t* made, int ranks, ncclUniqueId id, int rank) {
  (void)id;
  InnerComm* comm = malloc(sizeof *comm);
  *comm = (InnerComm){&here, ranks, rank};
  return *made = (ncclComm_t)comm, ncclSuccess;
}
FAKE ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = ((InnerComm*)comm)->made_here == &here ? ncclSuccess : ncclInternalError;
  return *error == ncclSuccess ? ncclSuccess : ncclInvalidArgument;
}
static void* ask(void* comm) {
  ncclResult_t error = ncclInternalError;
  return ncclCommGetAsyncError(comm, &error) == ncclSuccess && error == ncclSuccess ? comm : NULL;
}
FAKE ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  pthread_t thread;
  void* asked = NULL;
  if (ask(comm) == NULL || pthread_create(&thread, NULL, ask, comm) != 0) return ncclInvalidArgument;
  pthread_join(thread, &asked);
  *count = ((InnerComm*)comm)->ranks;
  return asked == comm ? ncclSuccess : ncclInvalidArgument;
}
FAKE ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) { return *rank = ((InnerComm*)comm)->rank, ncclSuccess; }
FAKE ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) { return (void)comm, *device = 0, ncclSuccess; }
FAKE ncclResult_t ncclAlltoAll(const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  (void)input, (void)count, (void)type, (void)comm, (void)stream;
  return strcpy(output, "NCCL's"), ncclSuccess;
}
/* Its last step is another function's, which returns to whoever has called this one. */
FAKE ncclResult_t ncclAllGather(const void* input, void* output, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  return ncclAlltoAll(input, output, count, type, comm, stream);
}
/* It goes on when another function has answered. */
FAKE ncclResult_t ncclGather(const void* input, void* output, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                             cudaStream_t stream) {
  const ncclResult_t result = ncclAlltoAll(input, output, count, type, comm, stream);
  (void)root;
  return strcmp(output, "NCCL's") == 0 ? result : ncclInternalError;
}
FAKE ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  int count = 0;
  const ncclResult_t result = ncclCommCount(comm, &count);
  free(comm);
  return result;
}
