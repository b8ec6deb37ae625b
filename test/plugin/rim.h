// What the tests of the rim share: a fake network as good as new, the lines that a logger of NCCL's would get, a comm to call with.
#pragma once
#include <string>
#include <vector>

#include "base/log.h"
#include "plugin/net_log.h"
#include "test/plugin/fake_net.h"
#include "test/plugin/slots.h"

namespace gyre::plugin {

struct LoggedLine {
  ncclDebugLogLevel level;
  unsigned long flags;
  std::string file, text;
};
std::vector<LoggedLine>& logged();
/// A logger as NCCL's: formats the line and keeps it in logged().
void keep_line(ncclDebugLogLevel, unsigned long flags, const char* file, int line, const char* format, ...);

/// For the life of a test: the fake is new, nothing is logged yet, and what is logged comes to keep_line.
struct Rim {
  Rim();
  Rim(const Rim&) = delete;
  Rim& operator=(const Rim&) = delete;
  ~Rim();

  FakeNet& fake = fake_net();
  std::byte handle[handle_bytes] = {};
  /// What stands in a variable of NCCL's before a call that must overwrite it.
  void* const stale = &stale_;

 private:
  int stale_ = 0;
};

/// The same, with comm 1, which sends, listener 1, comm 2, which receives, and memory 1.
template <class Table>
struct OpenRim : Rim {
  OpenRim() {
    Slots<Table>::init(&context, keep_line);
    Slots<Table>::connect(context, 0, handle, &send_comm);
    Slots<Table>::listen(context, 0, handle, &listener);
    Slots<Table>::accept(listener, &receive_comm);
    Slots<Table>::table().regMr(send_comm, data, static_cast<typename Slots<Table>::RegisteredSize>(sizeof data), NCCL_PTR_HOST, &memory);
    fake.calls.clear();
    logged().clear();
  }
  OpenRim(const OpenRim&) = delete;
  OpenRim& operator=(const OpenRim&) = delete;
  ~OpenRim() {
    fake = FakeNet{};
    if constexpr (Slots<Table>::has_contexts) Slots<Table>::table().finalize(context);
    if constexpr (!Slots<Table>::has_contexts) end_log();
  }

  void *context = nullptr, *send_comm = nullptr, *listener = nullptr, *receive_comm = nullptr, *memory = nullptr;
  char data[64] = {};
};

}  // namespace gyre::plugin
