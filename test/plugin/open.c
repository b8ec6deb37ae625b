/* Opens a net and tuner plugin as NCCL does, from C: every table is there, statically named, whole; it starts, lists its devices and ends,
 * in every version; and all of it again after dlclose. First by a process that ends without ending its tuner. open PLUGIN.so */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/abi/net_properties_layout.h"
#include "plugin/abi/net_table_layout.h"
#include "plugin/abi/tuner_layout.h"

#define EXPECT(condition, ...)                                        \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__);                                   \
      fputc('\n', stderr);                                            \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

static int logger_is_gone = 0;

static void print_line(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* format, ...) {
  va_list arguments;
  (void)flags;
  EXPECT(!logger_is_gone, "at the end of the process");
  printf("  %d %s:%d ", (int)level, file, line);
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  putchar('\n');
}

static const void* table_of(void* library, const char* kind, int version, size_t slots) {
  char symbol[32];
  snprintf(symbol, sizeof symbol, "nccl%sPlugin_v%d", kind, version);
  const void* table = dlsym(library, symbol);
  EXPECT(table != NULL, "%s", symbol);
  const char* name;
  memcpy(&name, table, sizeof name);
  EXPECT(strcmp(name, "gyre") == 0, "%s is named %s", symbol, name);
  for (size_t i = 1; i < slots; ++i) {
    void* slot;
    memcpy(&slot, (const char*)table + i * sizeof slot, sizeof slot);
    const int is_net = strcmp(kind, "Net") == 0;
    const int on_gpu =
        is_net && version >= 7 &&
        (i == offsetof(ncclNet_v12_t, getDeviceMr) / sizeof slot || i == offsetof(ncclNet_v12_t, irecvConsumed) / sizeof slot);
    const int chunks = !is_net && i == offsetof(ncclTuner_v6_t, getChunkSize) / sizeof slot;
    EXPECT((slot == NULL) == (on_gpu || chunks), "%s, slot %zu is %p", symbol, i, slot);
  }
  return table;
}

/* What is the same for all versions, once init was called: the devices. */
#define LIST(version)                                                                                                     \
  do {                                                                                                                    \
    int devices = 0;                                                                                                      \
    EXPECT(t->devices(&devices) == ncclSuccess && devices > 0, "version %d: %d devices", version, devices);               \
    for (int d = 0; d < devices; ++d) {                                                                                   \
      ncclNetProperties_v##version##_t p;                                                                                 \
      memset(&p, 0xff, sizeof p);                                                                                         \
      EXPECT(t->getProperties(d, &p) == ncclSuccess, "version %d: device %d", version, d);                                \
      EXPECT(p.name != NULL && p.name[0] != '\0' && p.ptrSupport > 0 && p.maxRecvs == 8, "version %d", version);          \
      if (version == 12) printf("  device %d: %s, %d Mbit/s\n", d, p.name, p.speed);                                      \
    }                                                                                                                     \
    EXPECT(t->closeSend(NULL) == ncclSuccess && t->closeRecv(NULL) == ncclSuccess && t->closeListen(NULL) == ncclSuccess, \
           "version %d closes nothing", version);                                                                         \
  } while (0)

#define OLD(version, ...)                                                                           \
  do {                                                                                              \
    const ncclNet_v##version##_t* t = table_of(library, "Net", version, sizeof *t / sizeof(void*)); \
    EXPECT(t->init(__VA_ARGS__) == ncclSuccess, "version %d", version);                             \
    LIST(version);                                                                                  \
  } while (0)

#define WITH_CONTEXT(version)                                                                               \
  do {                                                                                                      \
    const ncclNet_v##version##_t* t = table_of(library, "Net", version, sizeof *t / sizeof(void*));         \
    ncclNetCommConfig_v##version##_t config = {NCCL_NET_TRAFFIC_CLASS_UNDEF};                               \
    void *first = NULL, *second = NULL;                                                                     \
    EXPECT(t->init(&first, 1, &config, print_line, NULL) == ncclSuccess && first != NULL, "first");         \
    EXPECT(t->init(&second, 2, NULL, print_line, NULL) == ncclSuccess && second != NULL, "second");         \
    EXPECT(first != second, "communicators share a context");                                               \
    LIST(version);                                                                                          \
    EXPECT(t->setNetAttr(first, NULL) == ncclSuccess, "version %d", version);                               \
    EXPECT(t->finalize(first) == ncclSuccess && t->finalize(second) == ncclSuccess, "version %d", version); \
  } while (0)

/* What is the same for the tuner's versions, once init was called: with no rules nothing is touched. */
#define TUNE(version, ...)                                                                                                              \
  do {                                                                                                                                  \
    float costs[NCCL_NUM_ALGORITHMS * NCCL_NUM_PROTOCOLS];                                                                              \
    int channels = 0;                                                                                                                   \
    for (int i = 0; i < NCCL_NUM_ALGORITHMS * NCCL_NUM_PROTOCOLS; ++i) costs[i] = (float)(i % 4) - 1;                                   \
    EXPECT(t->getCollInfo(context, ncclFuncAllReduce, 1024, 1, (float**)costs, NCCL_NUM_ALGORITHMS, NCCL_NUM_PROTOCOLS, __VA_ARGS__) == \
                   ncclSuccess &&                                                                                                       \
               channels == 0,                                                                                                           \
           "tuner %d", version);                                                                                                        \
    for (int i = 0; i < NCCL_NUM_ALGORITHMS * NCCL_NUM_PROTOCOLS; ++i)                                                                  \
      EXPECT(costs[i] == (float)(i % 4) - 1, "tuner %d, entry %d", version, i);                                                         \
  } while (0)

#define TUNER(version) const ncclTuner_v##version##_t* t = table_of(library, "Tuner", version, sizeof *t / sizeof(void*))

static void open_tuners(void* library) {
  void* context = NULL;
  {
    TUNER(6);
    EXPECT(t->init(&context, 7, 8, 2, print_line, NULL, NULL) == ncclSuccess && context != NULL, "tuner 6");
    TUNE(6, 0, &channels);
    EXPECT(t->finalize(context) == ncclSuccess, "tuner 6");
  }
  {
    TUNER(5);
    context = NULL;
    EXPECT(t->init(&context, 7, 8, 2, print_line, NULL, NULL) == ncclSuccess && context != NULL, "tuner 5");
    TUNE(5, 1, &channels);
    EXPECT(t->finalize(context) == ncclSuccess, "tuner 5");
  }
  {
    TUNER(4);
    context = NULL;
    EXPECT(t->init(8, 2, print_line, &context) == ncclSuccess && context != NULL, "tuner 4");
    TUNE(4, 0, &channels);
    EXPECT(t->destroy(context) == ncclSuccess, "tuner 4");
  }
  {
    TUNER(3);
    context = NULL;
    EXPECT(t->init(8, 2, print_line, &context) == ncclSuccess && context != NULL, "tuner 3");
    TUNE(3, &channels);
    EXPECT(t->destroy(context) == ncclSuccess, "tuner 3");
  }
  int algorithm = NCCL_ALGO_UNDEF, protocol = NCCL_PROTO_UNDEF, channels = 0;
  {
    TUNER(2);
    context = NULL;
    EXPECT(t->init(8, 2, print_line, &context) == ncclSuccess && context != NULL, "tuner 2");
    EXPECT(t->getCollInfo(context, ncclFuncAllReduce, 1024, 0, 0, 1, &algorithm, &protocol, &channels) == ncclSuccess, "tuner 2");
    EXPECT(t->destroy(context) == ncclSuccess, "tuner 2");
  }
  {
    TUNER(1);
    EXPECT(t->init(8, 2, print_line) == ncclSuccess, "tuner 1");
    EXPECT(t->getCollInfo(ncclFuncAllReduce, 1024, 0, 0, 1, &algorithm, &protocol, &channels) == ncclSuccess, "tuner 1");
    EXPECT(t->destroy() == ncclSuccess, "tuner 1");
  }
  EXPECT(algorithm == NCCL_ALGO_UNDEF && protocol == NCCL_PROTO_UNDEF && channels == 0, "tuners 2 and 1 choose without rules");
}

/* As torch does without destroy_process_group. */
static void leave_a_tuner(const char* plugin) {
  setenv("GYRE_EXPLAIN", "1", 1);
  void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  EXPECT(library != NULL, "%s", dlerror());
  void* context = NULL;
  TUNER(6);
  EXPECT(t->init(&context, 7, 8, 2, print_line, NULL, NULL) == ncclSuccess && context != NULL, "tuner 6");
  TUNE(6, 0, &channels);
  TUNE(6, 0, &channels);
  logger_is_gone = 1;
  exit(0);
}

static void what_was_used_is_said_at_exit(const char* plugin) {
  int ends[2], status = 1;
  char said[4096] = "";
  EXPECT(pipe(ends) == 0, "no pipe");
  const pid_t child = fork();
  EXPECT(child >= 0, "no process");
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    leave_a_tuner(plugin);
  }
  close(ends[1]);
  size_t length = 0;
  for (ssize_t more; (more = read(ends[0], said + length, sizeof said - 1 - length)) > 0;) length += (size_t)more;
  close(ends[0]);
  EXPECT(waitpid(child, &status, 0) == child && status == 0, "status %d: %s", status, said);
  const char* line = "explain: all_reduce, 1024 to 2047 bytes: tree/ll128, NCCL's own choice 2 times\n";
  EXPECT(strstr(said, line) != NULL, "said \"%s\"", said);
}

int main(int argc, char** argv) {
  EXPECT(argc == 2, "usage: %s PLUGIN.so", argv[0]);
  what_was_used_is_said_at_exit(argv[1]);
  for (int round = 1; round <= 3; ++round) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    EXPECT(library != NULL, "%s", dlerror());
    printf("round %d\n", round);
    /* First those that say when they end. */
    WITH_CONTEXT(12);
    WITH_CONTEXT(11);
    OLD(10, print_line, NULL);
    OLD(9, print_line);
    OLD(8, print_line);
    OLD(7, print_line);
    OLD(6, print_line);
    OLD(5, NULL);
    open_tuners(library);
    EXPECT(dlclose(library) == 0, "%s", dlerror());
  }
  return 0;
}
