// The net plugin in gyre's terms: what net_abi.cpp calls for every version of NCCL's table. Devices, connections and requests of one
// process. Nothing here blocks, and what can't be done now is null or false; errors are worded here and logged at the rim.
//
// Threads: NCCL calls from a Service thread (listen, connect, accept, registration, close) and a Progress thread (send, receive, test)
// of each communicator, on the same connections at a time. Any call may come from any thread.
// It must not know: NCCL's structs, UCX.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/config.h"
#include "base/result.h"
#include "transport/net_device.h"
#include "transport/transport.h"

namespace gyre::plugin {

inline constexpr size_t handle_bytes = 128;
/// Receives that one request may group; and requests of one connection that may be under way.
inline constexpr int max_grouped = 8;
inline constexpr size_t max_requests = 256;

class Context;     ///< of a communicator (table version 11 on), or of the process
class ListenComm;  ///< waits for one sender or several
class Comm;        ///< a connection in one direction
using SendComm = Comm;
using RecvComm = Comm;
class Memory;   ///< a registration; as often as registered it must be given back
class Request;  ///< a send, a grouped receive or a flush under way

using transport::MemoryKind;

/// A network as NCCL will see it; several physical ones where it is fused.
struct Properties {
  transport::NetDevice device;  ///< of a fused one: the first member's, with name, speed and port of the whole
  std::span<const int> members;
  bool cuda = false, dmabuf = false;  ///< memory of these kinds can be registered
};

/// Starts the plugin, or a communicator in it. The first call reads options and looks for devices; `traffic_class`: -1 none.
Result<Context*> open(uint64_t communicator, int traffic_class);
/// An older table was initialised once more: NCCL has loaded the plugin again, and knows of physical devices only.
void loaded_again();
/// The communicator is gone: whatever of it NCCL forgot to close is closed. Null: does nothing.
Status finalize(Context*);

Result<int> devices();
Result<Properties> properties(int device);
/// Fuses 1 to 8 physical devices; the new one's index.
Result<int> make_virtual_device(std::span<const int> members);

using Handle = std::span<std::byte, handle_bytes>;
/// Null context: the process's. The handle is to be carried to the sender.
Result<ListenComm*> listen(Context*, int device, Handle);
/// Null: call again, with the same handle, in which the progress made is noted.
Result<SendComm*> connect(Context*, int device, Handle);
Result<RecvComm*> accept(ListenComm*);

/// `dmabuf`: the descriptor of GPU memory, where NCCL has one; not needed after the call.
Result<Memory*> register_memory(Comm*, void* data, size_t bytes, MemoryKind, const transport::DmaBuf* dmabuf = nullptr);
/// Nothing touches the memory afterwards: what is under way with it ends the connection.
Status deregister(Comm*, Memory*);

/// Null: try again. Messages of one connection and tag arrive in order.
Result<Request*> send(SendComm*, const void* data, size_t bytes, int tag, Memory*);
/// Receives 1 to max_grouped messages; each from the oldest send of its tag that is not received yet.
struct Receives {
  std::span<void* const> data;
  std::span<const size_t> bytes;
  std::span<const int> tags;
  void* const* memory;  ///< Memory*
};
Result<Request*> receive(RecvComm*, const Receives&);
/// Makes what was received visible to the GPU. Null: nothing to wait for.
Result<Request*> flush(RecvComm*, std::span<void* const> data, std::span<const int> bytes, void* const* memory);
/// True: the request is done and gone. `sizes` (or null): bytes of the send, or of each grouped receive; INT_MAX where more.
/// An error: the connection is lost, and so are all its requests.
Result<bool> test(Request*, int* sizes);

/// Return at once, whatever is under way; null, and what was closed before, are taken too.
void close(ListenComm*);
void close(Comm*);

}  // namespace gyre::plugin
