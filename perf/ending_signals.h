// Signals that end a process, held back while it has something to put in order first.
#pragma once
#include <array>
#include <csignal>

namespace gyre::perf {

/// While it lives, a signal that would end this process is only remembered, and raised again when it goes. Those that this process was told
/// to ignore, as by nohup, stay ignored, here and in what it starts. One at a time.
class EndingSignals {
 public:
  EndingSignals();
  EndingSignals(const EndingSignals&) = delete;
  EndingSignals& operator=(const EndingSignals&) = delete;
  ~EndingSignals();

  /// The last one that came; 0: none.
  static int come();

 private:
  static constexpr std::array signals{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
  std::array<struct sigaction, signals.size()> before_{};
};

/// While it lives, the end of a child can be waited for, even if this process was started with its children's ends ignored.
class WaitedChildren {
 public:
  WaitedChildren();
  WaitedChildren(const WaitedChildren&) = delete;
  WaitedChildren& operator=(const WaitedChildren&) = delete;
  ~WaitedChildren();

 private:
  struct sigaction before_ {};
};

}  // namespace gyre::perf
