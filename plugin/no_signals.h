// Blocks all signals of the calling thread while it lives: a thread started meanwhile never gets the program's.
#pragma once
#include <pthread.h>

#include <csignal>

namespace gyre::plugin {

class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace gyre::plugin
