/* What programs for NCCL in these tests begin with: who they are, how they share a unique id, and what they expect. A program includes this
 * once, after defining _DEFAULT_SOURCE. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plugin/abi/nccl.h"

static int rank, ranks;
static const char* id_file;

#define EXPECT(condition, ...)                                                       \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "rank %d: %s:%d: %s: ", rank, __FILE__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__);                                                  \
      fprintf(stderr, " (last error: %s)\n", ncclGetLastError(NULL));                \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)
#define MUST(call)                                                             \
  do {                                                                         \
    const ncclResult_t must_result = (call);                                   \
    EXPECT(must_result == ncclSuccess, "%s", ncclGetErrorString(must_result)); \
  } while (0)

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline ncclUniqueId share_id(void) {
  ncclUniqueId id = {{0}}; /* of which older releases leave bytes as they are */
  char other[4096];
  snprintf(other, sizeof other, "%s.new", id_file);
  if (rank == 0) {
    MUST(ncclGetUniqueId(&id));
    FILE* file = fopen(other, "w");
    EXPECT(file != NULL && fwrite(&id, sizeof id, 1, file) == 1 && fclose(file) == 0 && rename(other, id_file) == 0, "%s", id_file);
    return id;
  }
  for (const double end = seconds() + 30; seconds() < end; usleep(1000)) {
    FILE* file = fopen(id_file, "r");
    if (file == NULL) continue;
    const size_t read = fread(&id, sizeof id, 1, file);
    fclose(file);
    if (read == 1) return id;
  }
  EXPECT(0, "no id in %s", id_file);
  return id;
}

/* Element i of a rank's input. Small integers: sums are exact in any order. */
static inline float element(int of, size_t i) { return (float)((size_t)(of + 1) * (i % 13 + 1)); }

static inline void fill(float* data, size_t count) {
  for (size_t i = 0; i < count; ++i) data[i] = element(rank, i);
}

/* Runs the story of that name; 2: there is none, or the words are too few. */
typedef struct {
  const char* name;
  void (*run)(void);
} Story;
static int tell(int count, char** words, const Story* stories, size_t many) {
  if (count != 5) return 2;
  rank = atoi(words[2]);
  ranks = atoi(words[3]);
  id_file = words[4];
  for (size_t i = 0; i < many; ++i) {
    if (strcmp(words[1], stories[i].name) == 0) return stories[i].run(), 0;
  }
  return 2;
}
