/* What a test in the same process gives the fake NCCL: who hears what it says of itself, and streams that its work goes to. */
#pragma once
struct CUstream_st; /* of a cudaStream_t */

typedef struct {
  void (*say)(const char* line); /* NULL: it is printed */
  /* Gives those streams the work: it begins after what each was given before, and what they are given next begins after it. NULL: there
   * are no streams, and a call is done when it returns. */
  void (*on_streams)(struct CUstream_st* const* streams, int count, void (*work)(void* argument), void* argument);
  /* Called by ranks that are to be in a communicator that is split off, all of which have asked for it: NCCL's result for that rank. NULL:
   * by none. */
  int (*splitting)(int color);
  int has_no_windows;
  /* Called in the background, before a call of a communicator that does not block comes to the stream; the call is in progress until then.
   * NULL: such calls are launched as others. */
  void (*launching)(struct CUstream_st* stream);
} FakeNcclHooks;
/* Where a fake NCCL has them, by this name. */
typedef FakeNcclHooks* FakeNcclHooksOf(void);
