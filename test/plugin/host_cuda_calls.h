/* The GPU of the host's threads (test/simt), for programs in C: what CUDA's runtime is to a real one. In the library that answers NCCL's
 * calls there, which is loaded before the program. */
#pragma once
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
struct CUstream_st; /* of a cudaStream_t */

/* Both for as long as the process lives. */
struct CUstream_st* host_cuda_stream(void);
void* host_cuda_memory(size_t bytes);
/* 1: the stream has done all that it was given, within that time; 0: it has not. */
int host_cuda_done(struct CUstream_st* stream, int milliseconds);
#ifdef __cplusplus
}
#endif
