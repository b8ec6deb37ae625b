// A net plugin for tests: the one that FAULTY_NET_INNER names, with one fault. It hands the inner plugin's table 12 on, copied when it is
// loaded, and puts its own functions in place of a few; FAULTY_NET says which fault:
//   wrong_byte   the last byte of what was received is changed      wrong_size   … is said to be a byte shorter
//   send_error   the third send is ncclSystemError                  test_error   the third test is ncclRemoteError
//   never_done   nothing is ever done                               refuse_some  every other send and receive is not posted at once
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#include "plugin/abi/net_table.h"

namespace {

ncclNet_v12_t inner;
std::string_view fault;
int sends = 0;
int receives = 0;
int tests = 0;

struct Received {
  unsigned char* data;
  size_t bytes;
};
std::map<void*, Received> receiving;

ncclResult_t faulty_isend(void* comm, void* data, size_t size, int tag, void* mhandle, void* phandle, void** request) {
  ++sends;
  if (fault == "send_error" && sends == 3) return ncclSystemError;
  if (fault == "refuse_some" && sends % 2 == 1) {
    *request = nullptr;
    return ncclSuccess;
  }
  return inner.isend(comm, data, size, tag, mhandle, phandle, request);
}

ncclResult_t faulty_irecv(void* comm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** phandles, void** request) {
  if (fault == "refuse_some" && ++receives % 2 == 1) {
    *request = nullptr;
    return ncclSuccess;
  }
  const ncclResult_t result = inner.irecv(comm, n, data, sizes, tags, mhandles, phandles, request);
  if (*request != nullptr) receiving[*request] = {static_cast<unsigned char*>(data[0]), sizes[0]};
  return result;
}

ncclResult_t faulty_test(void* request, int* done, int* sizes) {
  *done = 0;
  if (fault == "never_done") return ncclSuccess;
  if (fault == "test_error" && ++tests == 3) return ncclRemoteError;
  const ncclResult_t result = inner.test(request, done, sizes);
  const auto found = receiving.find(request);
  if (*done == 0 || found == receiving.end()) return result;
  const Received received = found->second;
  receiving.erase(found);
  if (fault == "wrong_byte" && received.bytes > 0) received.data[received.bytes - 1] ^= 1;
  if (fault == "wrong_size") --sizes[0];
  return result;
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) ncclNet_v12_t ncclNetPlugin_v12;
}

namespace {

__attribute__((constructor)) void load() {
  const char* path = std::getenv("FAULTY_NET_INNER");
  void* library = path != nullptr ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  const void* table = library != nullptr ? dlsym(library, "ncclNetPlugin_v12") : nullptr;
  if (table == nullptr) {
    std::fprintf(stderr, "faulty_net: FAULTY_NET_INNER names no net plugin with table 12\n");
    return;
  }
  const char* asked = std::getenv("FAULTY_NET");
  fault = asked != nullptr ? asked : "";
  inner = *static_cast<const ncclNet_v12_t*>(table);
  ncclNetPlugin_v12 = inner;
  ncclNetPlugin_v12.isend = faulty_isend;
  ncclNetPlugin_v12.irecv = faulty_irecv;
  ncclNetPlugin_v12.test = faulty_test;
}

}  // namespace
