#include "plugin/net.h"

#include "plugin/process.h"

namespace gyre::plugin {

Result<Context*> open(uint64_t communicator, int traffic_class) { return Process::get().open(communicator, traffic_class); }

void loaded_again() { Process::get().loaded_again(); }

Status finalize(Context* context) {
  Process::get().finalize(context);
  return {};
}

Result<int> devices() { return Process::get().devices(); }
Result<Properties> properties(int device) { return Process::get().properties(device); }
Result<int> make_virtual_device(std::span<const int> members) { return Process::get().make_virtual_device(members); }

Result<ListenComm*> listen(Context* context, int device, Handle handle) { return Process::get().listen(context, device, handle); }
Result<SendComm*> connect(Context* context, int device, Handle handle) { return Process::get().connect(context, device, handle); }
Result<RecvComm*> accept(ListenComm* listener) { return Process::get().accept(listener); }

Result<Memory*> register_memory(Comm* comm, void* data, size_t bytes, MemoryKind kind, const transport::DmaBuf* dmabuf) {
  return comm->register_memory(data, bytes, kind, dmabuf);
}
Status deregister(Comm* comm, Memory* memory) { return comm->deregister(memory); }

Result<Request*> send(SendComm* comm, const void* data, size_t bytes, int tag, Memory* memory) {
  return comm->send(data, bytes, tag, memory);
}
Result<Request*> receive(RecvComm* comm, const Receives& receives) { return comm->receive(receives); }
Result<Request*> flush(RecvComm* comm, std::span<void* const> data, std::span<const int> bytes, void* const* memory) {
  return comm->flush(data, bytes, memory);
}
Result<bool> test(Request* request, int* sizes) { return request->comm->test(*request, sizes); }

void close(ListenComm* listener) { Process::get().close(listener); }
void close(Comm* comm) { Process::get().close(comm); }

}  // namespace gyre::plugin
