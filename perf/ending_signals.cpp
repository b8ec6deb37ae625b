#include "perf/ending_signals.h"

namespace gyre::perf {
namespace {

volatile std::sig_atomic_t signal_that_came = 0;
void remember_signal(int signal) { signal_that_came = signal; }

}  // namespace

EndingSignals::EndingSignals() {
  signal_that_came = 0;
  struct sigaction remembering {};
  remembering.sa_handler = remember_signal;
  for (size_t i = 0; i < signals.size(); ++i) {
    sigaction(signals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(signals[i], &remembering, nullptr);
  }
}

EndingSignals::~EndingSignals() {
  for (size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  if (signal_that_came != 0) std::raise(signal_that_came);
}

int EndingSignals::come() { return signal_that_came; }

WaitedChildren::WaitedChildren() {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &usual, &before_);
}

WaitedChildren::~WaitedChildren() { sigaction(SIGCHLD, &before_, nullptr); }

}  // namespace gyre::perf
