/* A CUDA driver that does nothing but count how often it is called: on a real one each of these calls takes time of its own. */
#include <stddef.h>
#include <stdint.h>

#define SHOWN __attribute__((visibility("default")))

static int context_here, event_here;
static long driver_calls;
SHOWN long idle_cuda_calls(void) { return driver_calls; }
static int done(void) { return ++driver_calls, 0; }

SHOWN int cuPointerGetAttribute(void* data, int attribute, uintptr_t at) {
  (void)attribute, (void)at;
  return *(unsigned*)data = 2, done(); /* a device's memory */
}
SHOWN int cuStreamSynchronize(void* stream) { return (void)stream, done(); }
SHOWN int cuStreamIsCapturing(void* stream, int* captures) { return (void)stream, *captures = 0, done(); }
SHOWN int cuStreamGetCtx(void* stream, void** context) { return (void)stream, *context = &context_here, done(); }
SHOWN int cuStreamWaitEvent(void* stream, void* event, unsigned flags) { return (void)stream, (void)event, (void)flags, done(); }
SHOWN int cuEventCreate(void** event, unsigned flags) { return (void)flags, *event = &event_here, done(); }
SHOWN int cuEventRecord(void* event, void* stream) { return (void)event, (void)stream, done(); }
SHOWN int cuEventQuery(void* event) { return (void)event, done(); }
SHOWN int cuEventDestroy_v2(void* event) { return (void)event, done(); }
SHOWN int cuCtxGetDevice(int* device) { return *device = 0, done(); }
SHOWN int cuCtxGetCurrent(void** context) { return *context = &context_here, done(); }
SHOWN int cuCtxPushCurrent_v2(void* context) { return (void)context, done(); }
SHOWN int cuCtxPopCurrent_v2(void** context) { return *context = &context_here, done(); }
SHOWN int cuDeviceGet(int* device, int number) { return *device = number, done(); }
SHOWN int cuDevicePrimaryCtxRetain(void** context, int device) { return (void)device, *context = &context_here, done(); }
SHOWN int cuMemcpyAsync(uintptr_t to, uintptr_t from, size_t bytes, void* stream) {
  return (void)to, (void)from, (void)bytes, (void)stream, done();
}
SHOWN int cuMemAlloc_v2(uintptr_t* at, size_t bytes) { return (void)bytes, *at = 0, done(); }
SHOWN int cuMemFree_v2(uintptr_t at) { return (void)at, done(); }
