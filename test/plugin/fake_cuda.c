/* See fake_cuda.h. For one thread. */
#include "test/plugin/fake_cuda.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FAKE __attribute__((visibility("default")))

enum { DEVICES = 2, MOST_PUSHED = 8, NO_DEVICE = 101, NO_CONTEXT = 201, INVALID = 400 };
typedef struct {
  int device;
} Context;
static Context contexts[DEVICES] = {{0}, {1}};
static Context* pushed[MOST_PUSHED + 1];
static int depth;
static FakeCuda state = {"", 0, 0, 0, 0, -1, 0};

static Context* now(void) { return pushed[depth]; }
static void note(void) { state.current = now() == NULL ? -1 : now()->device; }
static void say(char what, const Context* context) {
  const size_t length = strlen(state.said);
  if (length + 3 > sizeof state.said) abort();
  state.said[length] = what;
  state.said[length + 1] = (char)('0' + context->device);
  state.said[length + 2] = 0;
}
FAKE FakeCuda* fake_cuda(void) { return &state; }
FAKE void fake_cuda_enter(int device) { depth = 0, pushed[0] = device < 0 ? NULL : &contexts[device], note(); }
FAKE struct CUstream_st* fake_cuda_stream(int device) { return (struct CUstream_st*)&contexts[device]; }
/* The null stream, the legacy and the per-thread one are of the current context. */
static Context* of(void* stream) { return (uintptr_t)stream <= 2 ? now() : (Context*)stream; }

FAKE int cuPointerGetAttribute(void* data, int attribute, uintptr_t at) { return (void)data, (void)attribute, (void)at, INVALID; }
FAKE int cuStreamSynchronize(void* stream) {
  if (of(stream) == NULL) return NO_CONTEXT;
  if (state.fails_synchronizing == 0) say('s', of(stream));
  return state.fails_synchronizing;
}
FAKE int cuCtxGetDevice(int* device) { return now() == NULL ? NO_CONTEXT : (*device = now()->device, 0); }
FAKE int cuStreamIsCapturing(void* stream, int* captures) {
  if (of(stream) == NULL) return NO_CONTEXT;
  return *captures = state.captures, state.fails_capturing;
}
FAKE int cuEventCreate(void** event, unsigned flags) {
  (void)flags;
  return now() == NULL ? NO_CONTEXT : (*event = now(), 0);
}
FAKE int cuEventRecord(void* event, void* stream) {
  if (of(stream) != event) return INVALID;
  if (state.fails_recording == 0) say('r', event);
  return state.fails_recording;
}
FAKE int cuEventQuery(void* event) { return (void)event, 0; }
FAKE int cuEventDestroy_v2(void* event) { return (void)event, 0; }
FAKE int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  (void)event, (void)flags;
  return of(stream) == NULL ? NO_CONTEXT : (say('w', of(stream)), 0);
}
FAKE int cuCtxGetCurrent(void** context) { return *context = now(), 0; }
FAKE int cuCtxPushCurrent_v2(void* context) {
  if (context == NULL || depth == MOST_PUSHED) return INVALID;
  return pushed[++depth] = context, ++state.pushes, note(), 0;
}
FAKE int cuCtxPopCurrent_v2(void** context) {
  *context = now();
  if (depth > 0)
    --depth;
  else
    pushed[0] = NULL;
  return note(), 0;
}
FAKE int cuMemcpyAsync(uintptr_t to, uintptr_t from, size_t bytes, void* stream) {
  if (of(stream) == NULL) return NO_CONTEXT;
  memcpy((void*)to, (const void*)from, bytes);
  return say('c', of(stream)), 0;
}
FAKE int cuMemAlloc_v2(uintptr_t* at, size_t bytes) { return (void)at, (void)bytes, INVALID; }
FAKE int cuMemFree_v2(uintptr_t at) { return (void)at, INVALID; }
FAKE int cuDeviceGet(int* device, int number) { return number < 0 || number >= DEVICES ? NO_DEVICE : (*device = number, 0); }
FAKE int cuStreamGetCtx(void* stream, void** context) { return of(stream) == NULL ? NO_CONTEXT : (*context = of(stream), 0); }
FAKE int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = &contexts[device], 0; }
