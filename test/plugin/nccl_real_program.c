/* Says what the NCCL of this machine answers where it needs no GPU, and what gyre before it relies on.
 *
 *     nccl-real-program STORY 0 1 FILE     the unique id comes into FILE */
#define _DEFAULT_SOURCE /* usleep, clock_gettime */
#include <dlfcn.h>

#include "test/plugin/nccl_new_calls.h"
#include "test/plugin/nccl_program.h"

static void say(const char* what, ncclResult_t result) { printf("%s: %d, '%s'\n", what, (int)result, ncclGetLastError(NULL)); }

/* Of what is recorded in a group a wrong call spoils all, and the next group is right. */
static void groups(void) {
  say("an end without a start", ncclGroupEnd());
  say("a start", ncclGroupStart());
  say("a sum of no communicator", ncclAllReduce(NULL, NULL, 0, ncclFloat32, ncclSum, NULL, NULL));
  say("the end of its group", ncclGroupEnd());
  say("the next start", ncclGroupStart());
  say("its end", pncclGroupEnd());
}

/* Where there is no GPU: two ranks would wait for each other. */
static void refused_makings(const ncclUniqueId* id) {
  ncclComm_t comms[2] = {NULL, NULL};
  say("the first of two ranks", ncclCommInitRank(&comms[0], 2, *id, 0));
  say("a config", ncclCommInitRankConfig(&comms[0], 2, *id, 0, NULL));
  say("two ranks here", ncclCommInitAll(comms, 2, NULL));
  say("a group", ncclGroupStart());
  say("the second of two ranks", pncclCommInitRank(&comms[1], 2, *id, 1));
  say("the group's end", ncclGroupEnd());
}

static void facts(void) {
  int version = 0, count = 0;
  MUST(ncclGetVersion(&version));
  MUST(pncclGetVersion(&count));
  printf("version %d, %d\n", version, count);
  for (int code = 0; code <= ncclTimeout + 1; ++code) {
    const ncclResult_t result = (ncclResult_t)code;
    EXPECT(strcmp(pncclGetErrorString(result), ncclGetErrorString(result)) == 0, "%d", code);
    printf("%d is '%s'\n", code, ncclGetErrorString(result));
  }
  groups();
  const ncclUniqueId id = share_id();
  ncclComm_t comm = NULL;
  const ncclResult_t made = ncclCommInitRank(&comm, 1, id, 0);
  say("a rank alone", made);
  if (made == ncclSuccess)
    MUST(ncclCommDestroy(comm));
  else
    refused_makings(&id);
  say("the size of none", ncclCommCount(NULL, &count));
  say("none is finalized", ncclCommFinalize(NULL));
  say("none is destroyed", ncclCommDestroy(NULL));
  say("none is aborted", pncclCommAbort(NULL));
  say("another end without a start", ncclGroupEnd());
}

/* Where gyre says where its ranks meet, which NCCL must leave empty. */
static void id(void) {
  const ncclUniqueId made = share_id();
  int written = 0;
  for (size_t i = 64; i < sizeof made; ++i) written += made.internal[i] != 0;
  puts(written > 0 ? "the second half is written" : "the second half is empty");
}

static void lacks(void) {
  void* nccl = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
  EXPECT(nccl != NULL, "no NCCL is loaded: %s", dlerror());
  for (int i = 0; i < MANY_NEW_CALLS; ++i) {
    if (dlsym(nccl, new_calls[i].name) != NULL) continue;
    EXPECT(new_calls[i].call() == ncclInvalidUsage, "%s", new_calls[i].name);
    puts(new_calls[i].name);
  }
}

int main(int count, char** words) {
  const Story stories[] = {{"facts", facts}, {"id", id}, {"lacks", lacks}};
  return tell(count, words, stories, sizeof stories / sizeof *stories);
}
