// The thread that sleeps in poll() over a rank's connections: rank 0's over all ranks, another's over the one to rank 0. It alone touches
// the sockets and Root; other threads give it messages by post() and tell().
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "transport/bootstrap_join.h"
#include "transport/bootstrap_member.h"
#include "transport/bootstrap_root.h"

namespace gyre::transport::bootstrap {

class Watch {
 public:
  /// `joined`: on rank 0 all ranks, elsewhere rank 0 alone. `member` outlives this and may be fed before the constructor returns.
  static Result<std::unique_ptr<Watch>> start(Rank rank, std::vector<Joined> joined, Member& member);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();  ///< says goodbye and ends the thread

  /// Sends to rank 0; which message it is of those that were posted. From any thread.
  uint64_t post(Message);
  /// The same, and returns once the kernel has taken it, which sends it also where this process ends now; or after `limit`.
  void tell(Message, std::chrono::milliseconds limit);

 private:
  Watch(Rank rank, std::vector<Joined> joined, Member& member, UniqueFd wake);
  void run();
  void serve();
  bool take_posted();
  void take_own();
  void note_told();
  void wait();
  void receive(size_t peer);
  void leave();
  void take(const Message&);
  void wake();

  Member& member_;
  UniqueFd wake_;
  std::vector<Joined> peers_;       ///< on rank 0 by rank, where our own has no connection; elsewhere one
  std::optional<Root> root_;        ///< on rank 0
  std::vector<SharedMessage> own_;  ///< of those that it sends, for rank 0 itself
  std::mutex mutex_;                ///< guards what follows
  std::vector<Message> posted_;
  uint64_t given_ = 0;  ///< messages that were posted,
  uint64_t taken_ = 0;  ///< of these, those that the thread has taken,
  uint64_t told_ = 0;   ///< and those that the kernel has
  std::condition_variable told_more_;
  bool leaving_ = false;
  std::thread thread_;
};

}  // namespace gyre::transport::bootstrap
