/* Plays CUDA's driver, with contexts of two devices, for what streams and events are of; it says in text what it was given. */
#pragma once
struct CUstream_st; /* of a cudaStream_t */

typedef struct {
  char said[256]; /* a letter for each, and its context's device: r: an event recorded, w: a stream waits, s: synchronized, c: copied */
  int fails_capturing; /* their errors; 0: none */
  int fails_recording;
  int fails_synchronizing;
  int captures; /* all streams are captured */
  int current;  /* what fake_cuda_enter has set, or a push; -1: none */
  int pushes;
} FakeCuda;
typedef FakeCuda* FakeCudaState(void);
/* The calling thread's context is that device's from now on; -1: none. */
typedef void FakeCudaEnter(int device);
/* A stream of that device's. */
typedef struct CUstream_st* FakeCudaStream(int device);
