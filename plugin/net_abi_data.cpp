// The slots of the hot path: a few compares each before what they are for; no allocation, no lock, no log.
#include <fmt/format.h>

#include <algorithm>

#include "plugin/guard.h"
#include "plugin/net.h"
#include "plugin/net_abi.h"
#include "plugin/net_abi_arguments.h"

namespace gyre::plugin {
namespace {

[[gnu::cold, gnu::noinline]] Error no_number(int n) {
  return Error{Code::invalid_argument, fmt::format("n is {}, must be from 1 to {}", n, max_grouped)};
}

}  // namespace

namespace newest {

ncclResult_t isend(void* sendComm, void* data, size_t size, int tag, void* mhandle, void*, void** request) {
  return guard("isend", [&]() -> Status {
    if (request == nullptr) [[unlikely]]
      return missing("request");
    *request = nullptr;  // whatever stood there: an old request, or a hint
    if (sendComm == nullptr) [[unlikely]]
      return missing("sendComm");
    if (data == nullptr && size > 0) [[unlikely]]
      return missing("data");
    *request = GYRE_TRY(send(static_cast<SendComm*>(sendComm), data, size, tag, static_cast<Memory*>(mhandle)));
    return {};
  });
}

ncclResult_t irecv(void* recvComm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void**, void** request) {
  return guard("irecv", [&]() -> Status {
    if (request == nullptr) [[unlikely]]
      return missing("request");
    *request = nullptr;  // also where 0x1 stood: completion is never reported early
    if (recvComm == nullptr) [[unlikely]]
      return missing("recvComm");
    if (n < 1 || n > max_grouped) [[unlikely]]
      return no_number(n);
    if (data == nullptr || sizes == nullptr || tags == nullptr || mhandles == nullptr) [[unlikely]]
      return missing(data == nullptr ? "data" : sizes == nullptr ? "sizes" : tags == nullptr ? "tags" : "mhandles");
    const auto count = static_cast<size_t>(n);
    *request = GYRE_TRY(receive(static_cast<RecvComm*>(recvComm), Receives{{data, count}, {sizes, count}, {tags, count}, mhandles}));
    return {};
  });
}

ncclResult_t iflush(void* recvComm, int n, void** data, int* sizes, void** mhandles, void** request) {
  return guard("iflush", [&]() -> Status {
    if (request == nullptr) [[unlikely]]
      return missing("request");
    *request = nullptr;
    if (recvComm == nullptr) [[unlikely]]
      return missing("recvComm");
    if (n < 1 || n > max_grouped) [[unlikely]]
      return no_number(n);
    if (data == nullptr || sizes == nullptr || mhandles == nullptr) [[unlikely]]
      return missing(data == nullptr ? "data" : sizes == nullptr ? "sizes" : "mhandles");
    const auto count = static_cast<size_t>(n);
    if (const int least = *std::min_element(sizes, sizes + n); least < 0) [[unlikely]]
      return negative_size(least);
    *request = GYRE_TRY(flush(static_cast<RecvComm*>(recvComm), {data, count}, {sizes, count}, mhandles));
    return {};
  });
}

ncclResult_t test(void* request, int* done, int* sizes) {
  return guard("test", [&]() -> Status {
    if (done == nullptr) [[unlikely]]
      return missing("done");
    *done = 0;
    if (request == nullptr) [[unlikely]]
      return missing("request");
    *done = GYRE_TRY(plugin::test(static_cast<Request*>(request), sizes)) ? 1 : 0;
    return {};
  });
}

}  // namespace newest
}  // namespace gyre::plugin
