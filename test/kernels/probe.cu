// Kernels that differ in nothing but how many packs they load, or store: what quality.py learns the machine's instructions from.
#include "kernels/mem.h"

using namespace gyre::kernels;

template <int loads, int stores>
__global__ void probe(const Pack* from, Pack* to) {
  Pack mixed = load_stream(from + threadIdx.x);
  GYRE_UNROLL
  for (int i = 1; i < loads; ++i) {
    const Pack pack = load_stream(from + threadIdx.x + 32 * i);
    GYRE_UNROLL
    for (int word = 0; word < 4; ++word) mixed.words[word] ^= pack.words[word];
  }
  GYRE_UNROLL
  for (int i = 0; i < stores; ++i) store_stream(to + threadIdx.x + 32 * i, mixed);
}

template __global__ void probe<1, 1>(const Pack*, Pack*);
template __global__ void probe<6, 1>(const Pack*, Pack*);
template __global__ void probe<1, 6>(const Pack*, Pack*);
