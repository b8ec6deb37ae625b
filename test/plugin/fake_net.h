// plugin/net.h without a network: it notes what the rim calls, as text, and answers as told. Comms, listeners and memory are numbered from
// 1 on. One thread.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/net.h"

namespace gyre::plugin {

enum class Thrown { nothing, out_of_memory, exception, number };

struct FakeNet {
  FakeNet() { properties.device.name = "fake0"; }

  std::vector<std::string> calls;
  std::optional<Error> error;  ///< what each call answers
  Thrown thrown = Thrown::nothing;
  bool not_yet = false;  ///< connect, accept, send, receive, flush: null; test: false
  bool silent = false;   ///< notes nothing, and so allocates nothing
  int device_count = 2;
  Properties properties;
  int comms = 0, listeners = 0, memories = 0;  ///< made so far; the number of the last
  std::vector<int> received;                   ///< test: sizes of what was received

  /// The last call; "none" without one.
  std::string last() const { return calls.empty() ? "none" : calls.back(); }
};

/// The one that the rim meets. Its objects stay valid when it is made anew.
FakeNet& fake_net();
/// How often a context without communicator was opened since the process began.
int process_contexts(int traffic_class);

}  // namespace gyre::plugin
