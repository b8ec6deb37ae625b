// A descriptor that other processes of this host make ready: it wakes who sleeps in poll(), where a futex can't be waited for. A pipe,
// since these open it through its owner's /proc entry, as they do his shared memory; an eventfd can't be opened.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique.h"

namespace gyre::transport {

class WakePipe {
 public:
  static Result<WakePipe> create();
  /// Opens what address() of its creator says.
  static Result<WakePipe> open(std::string_view address);

  std::string address() const;  ///< only of one that was created here
  /// Ready to be read once woken, until drain().
  int fd() const { return read_.get(); }
  void wake() const;
  void drain() const;

 private:
  WakePipe(UniqueFd read, UniqueFd write) : read_(std::move(read)), write_(std::move(write)) {}

  UniqueFd read_;   // none: of another
  UniqueFd write_;  // its creator keeps one, so that the others' ends are not the pipe's
};

}  // namespace gyre::transport
