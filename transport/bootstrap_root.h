// Rank 0's side of the bootstrap as a state machine: collects the parts of an all_gather, notices who died or left, compares calls, and
// tells all ranks. Rank 0's own messages go through it like any other's. Pure: no sockets, no threads, no clock of its own; messages come
// in by take(), go out by the function given to it.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "transport/bootstrap_calls.h"
#include "transport/bootstrap_history.h"
#include "transport/bootstrap_pairs.h"
#include "transport/bootstrap_wire.h"

namespace gyre::transport::bootstrap {

class Root {
 public:
  using Clock = std::chrono::steady_clock;
  using Send = std::function<void(Rank to, const SharedMessage&)>;
  /// How long ranks have to say in which call they are.
  static constexpr std::chrono::milliseconds answer_limit{1000};
  /// How long a verdict on calls that differ waits for ranks that have not come to them: on a crowded host they may be slow.
  static constexpr std::chrono::milliseconds come_limit{2000};

  /// `names`: by rank, as Process::text() gives them.
  Root(std::vector<std::string> names, Send send);

  void take(Rank from, Message message, Clock::time_point now);
  /// A rank's connection has ended; no death when it had said goodbye.
  void closed(Rank rank, std::string_view why);
  /// When tick() has something to do, if ever.
  std::optional<Clock::time_point> deadline() const;
  void tick(Clock::time_point now);

 private:
  struct Seat {
    std::string name;
    bool left = false;
    bool gone = false;                ///< left or died
    uint64_t gathers = 0;             ///< that it has come to
    std::optional<std::string> part;  ///< of the all_gather under way
    uint64_t part_after = 0;          ///< the latest question of histories when that came
    std::optional<std::string> word;  ///< for each all_gather: it stays away
    std::optional<Call> call;         ///< the latest described
    uint64_t described = 0;           ///< times
    bool answered = false;            ///< since ask()
    std::vector<Made> made;           ///< as it has told last
    uint64_t recalled = 0;            ///< the question to which that is the answer
  };
  static bool is_missing(const Seat& s) { return !s.part && !s.word; }  ///< in the all_gather under way
  struct Question {
    uint64_t call;
    Clock::time_point deadline;
  };
  /// Of what calls the ranks have made; asked by a rank that waits.
  struct Recall {
    Rank by;
    Clock::time_point deadline;
    bool waits = false;  ///< for ranks that have not come to the call that differs
  };

  void take_part(Rank from, std::string bytes);
  void end_with_parts();
  void end_without_parts(std::string_view payload);
  void take_description(Rank from, std::string_view payload, Clock::time_point now);
  void take_goodbye(Rank from);
  std::vector<std::optional<Call>> calls() const;
  void ask(Rank from, uint64_t call, Clock::time_point now);
  bool still(const Circle&);
  void judge_if_answered();
  void judge();
  void recall(Rank by, Clock::time_point now);
  void take_history(Rank from, std::string_view payload);
  void judge_if_recalled();
  void judge_histories(bool last);
  void send_recall();
  std::vector<const Seat*> not_come_to(uint64_t call) const;  ///< by their histories
  std::string skipped(Rank waiting) const;
  void fail_if_left_behind();
  /// Tells all ranks but one (-1: all).
  void tell(Rank except, Message);
  void fail(Rank except, Code code, std::string_view text);
  Seat& seat(Rank rank) { return seats_[static_cast<size_t>(rank)]; }

  std::vector<Seat> seats_;
  Send send_;
  uint64_t gathered_ = 0;  ///< all_gathers that have ended, with parts or without
  std::optional<Question> question_;
  std::optional<Recall> recall_;
  uint64_t recalls_ = 0;
  std::vector<uint64_t> circle_since_;  ///< Seat::described when a circle was first seen; empty: there is none
  bool failed_ = false;
};

/// A failure as a message; its text is cut at max_text.
Message failure_message(Code, std::string_view text);

}  // namespace gyre::transport::bootstrap
