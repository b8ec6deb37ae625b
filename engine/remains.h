// What a GPU may still use when its owner ends.
#pragma once
#include <chrono>
#include <memory>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/log.h"
#include "base/result.h"

namespace gyre::engine {

/// Ends it, once `Result<bool> done()` of it says that the GPU has passed it or has failed: here, or where that takes longer by a thread of
/// its own, since what holds the user's stream may be another communicator, and end later.
template <class Remains>
void leave(std::unique_ptr<Remains> remains, std::string_view what) {
  constexpr std::chrono::milliseconds patience{200};
  const auto until = std::chrono::steady_clock::now() + patience;
  auto done = remains->done();
  for (; done && !*done && std::chrono::steady_clock::now() < until; done = remains->done()) std::this_thread::yield();
  if (!done || *done) return;
  Remains* const left = remains.release();
  try {
    std::thread([left] { delete left; }).detach();
  } catch (const std::system_error& error) {  // kept for good
    log::warn("no thread to end {}: {}", what, error.what());
  }
}

}  // namespace gyre::engine
