/* A program that opens NCCLs of its own and calls them by dlsym, beside the NCCL that it is linked with, with libgyre-nccl.so before that.
 *
 *     nccl-direct-program STORY RANK RANKS FILE, in TEST_SECOND_NCCL and TEST_THIRD_NCCL the files of NCCLs */
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <pthread.h>

#include "test/plugin/nccl_program.h"

typedef struct {
  void* library;
  ncclComm_t comm;
} Direct;

/* Its function of that name, of that type. */
#define OF(direct, name) (__extension__(__typeof__(&name)) dlsym((direct)->library, #name))

static Direct open_nccl(const char* variable, int size) {
  Direct one = {dlopen(getenv(variable), RTLD_NOW | RTLD_LOCAL), NULL};
  EXPECT(one.library != NULL, "%s", dlerror());
  ncclUniqueId id = {{0}};
  MUST(OF(&one, ncclGetUniqueId)(&id));
  MUST(OF(&one, ncclCommInitRank)(&one.comm, size, id, 0));
  return one;
}
static void check_direct(const Direct* one, int size) {
  int count = 0;
  MUST(OF(one, ncclCommCount)(one->comm, &count));
  EXPECT(count == size, "%d", count);
}
static void close_nccl(const Direct* one) {
  MUST(OF(one, ncclCommDestroy)(one->comm));
  EXPECT(dlclose(one->library) == 0, "%s", dlerror());
}

static void direct(void) {
  const Direct second = open_nccl("TEST_SECOND_NCCL", 3);
  check_direct(&second, 3);
  int count = 0;
  ncclComm_t comm = NULL;
  MUST(ncclCommInitRank(&comm, 1, share_id(), 0));
  MUST(ncclCommCount(comm, &count));
  EXPECT(count == 1, "%d", count);
  const Direct third = open_nccl("TEST_THIRD_NCCL", 4);
  check_direct(&second, 3);
  check_direct(&third, 4);
  close_nccl(&second);
  for (int i = 0; i < 3; ++i) { /* what comes to the place of one that was closed */
    const Direct other = open_nccl(i % 2 == 0 ? "TEST_THIRD_NCCL" : "TEST_SECOND_NCCL", i);
    check_direct(&other, i);
    close_nccl(&other);
  }
  close_nccl(&third);
  MUST(ncclCommCount(comm, &count));
  MUST(ncclCommDestroy(comm));
}

static ncclUniqueId shared_id;
static void* gather(void* own) {
  ncclComm_t comm = NULL;
  char in[128] = "", out[128] = "";
  MUST(ncclCommInitRank(&comm, 2, shared_id, *(int*)own));
  MUST(ncclAllGather(in, out, 64, ncclInt8, comm, NULL));
  EXPECT(strcmp(out, "NCCL's") == 0, "%s", out);
  MUST(ncclGather(in, out, 64, ncclInt8, 0, comm, NULL));
  MUST(ncclCommDestroy(comm));
  return NULL;
}

/* Two ranks of calls that NCCL leaves to another of its functions, as its last step and before it. */
static void last_step(void) {
  int own[2] = {0, 1};
  pthread_t thread;
  MUST(ncclGetUniqueId(&shared_id));
  EXPECT(pthread_create(&thread, NULL, gather, &own[1]) == 0, "a thread");
  gather(&own[0]);
  pthread_join(thread, NULL);
}

int main(int count, char** words) {
  const Story stories[] = {{"direct", direct}, {"last_step", last_step}};
  return tell(count, words, stories, sizeof stories / sizeof *stories);
}
