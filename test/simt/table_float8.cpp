#include "test/simt/cuda.h"
// The keywords come first.
#include "kernels/table_float8.cu"
