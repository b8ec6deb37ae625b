#include "transport/bootstrap_root.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "transport/bootstrap_text.h"

namespace gyre::transport::bootstrap {

Message failure_message(Code code, std::string_view text) {
  Message message{Kind::fail, {}};
  put(message.payload, static_cast<uint32_t>(code));
  message.payload += text.substr(0, max_text);
  return message;
}

Root::Root(std::vector<std::string> names, Send send) : send_(std::move(send)) {
  for (std::string& name : names) seats_.emplace_back().name = std::move(name);
}

void Root::take(Rank from, Message message, Clock::time_point now) {
  std::string_view payload = message.payload;
  switch (message.kind) {
    case Kind::gather:
      return take_part(from, std::move(message.payload));
    case Kind::describe:
      return take_description(from, payload, now);
    case Kind::goodbye:
      return take_goodbye(from);
    case Kind::fail: {
      const auto code = static_cast<Code>(bootstrap::take<uint32_t>(payload).value_or(static_cast<uint32_t>(Code::remote)));
      return fail(from, code, fmt::format("rank {} gave up: {}", from, payload));
    }
    default:
      return;
  }
}

void Root::take_part(Rank from, std::string bytes) {
  seat(from).part = std::move(bytes);
  fail_if_left_behind();
  if (failed_ || !std::all_of(seats_.begin(), seats_.end(), [](const Seat& s) { return s.part.has_value(); })) return;
  for (size_t rank = 0; rank < seats_.size(); ++rank) {
    Message part{Kind::part, {}};
    put(part.payload, static_cast<Rank>(rank));
    part.payload += *std::exchange(seats_[rank].part, std::nullopt);
    tell(-1, std::move(part));
  }
}

void Root::take_description(Rank from, std::string_view payload, Clock::time_point now) {
  const auto number = bootstrap::take<uint64_t>(payload);
  const auto plan = bootstrap::take<uint64_t>(payload);
  const auto urgent = bootstrap::take<uint8_t>(payload);
  if (!number || !plan || !urgent || failed_) return;
  seat(from).call = Call{*number, *plan, std::string(payload)};
  seat(from).answered = true;
  if (question_) return judge_if_answered();
  const bool differs = std::any_of(seats_.begin(), seats_.end(),
                                   [&](const Seat& s) { return s.call && s.call->number == *number && s.call->plan != *plan; });
  if (differs || *urgent != 0) ask(from, *number, now);
}

// A rank that has described the call in question already need not do so again: it may be waiting elsewhere by now.
void Root::ask(Rank from, uint64_t call, Clock::time_point now) {
  question_ = Question{call, now + answer_limit};
  const auto message = std::make_shared<const Message>(Message{Kind::ask, {}});
  for (size_t rank = 0; rank < seats_.size(); ++rank) {
    Seat& s = seats_[rank];
    s.answered = static_cast<Rank>(rank) == from || (s.call && s.call->number == call);
    if (!s.answered && !s.gone) send_(static_cast<Rank>(rank), message);
  }
  judge_if_answered();
}

void Root::judge_if_answered() {
  if (question_ && std::all_of(seats_.begin(), seats_.end(), [](const Seat& s) { return s.answered || s.gone; })) judge();
}

void Root::judge() {
  const Question question = *std::exchange(question_, std::nullopt);
  std::vector<Standing> standings;
  for (const Seat& s : seats_) standings.push_back({s.answered ? s.call : std::nullopt, s.gone});
  fail(-1, Code::invalid_usage, compare_calls(question.call, standings));
}

void Root::take_goodbye(Rank from) {
  Seat& leaving = seat(from);
  leaving.left = leaving.gone = true;
  leaving.part.reset();
  fail_if_left_behind();  // first, so that those who wait learn it even from a rank 0 that leaves
  Message message{Kind::left, {}};
  put(message.payload, from);
  tell(from, std::move(message));
  judge_if_answered();
}

void Root::fail_if_left_behind() {
  std::vector<Rank> gone;
  bool waiting = false;
  for (size_t rank = 0; rank < seats_.size(); ++rank) {
    if (seats_[rank].left) gone.push_back(static_cast<Rank>(rank));
    waiting = waiting || seats_[rank].part.has_value();
  }
  if (waiting && !gone.empty()) fail(-1, Code::remote, fmt::format("{} {} left", ranks_text(gone), gone.size() == 1 ? "has" : "have"));
}

void Root::closed(Rank rank, std::string_view why) {
  Seat& ended = seat(rank);
  if (std::exchange(ended.gone, true)) return;
  fail(rank, Code::remote, fmt::format("{} is gone: {}", ended.name, why));
}

std::optional<Root::Clock::time_point> Root::deadline() const {
  if (!question_) return std::nullopt;
  return question_->deadline;
}

void Root::tick(Clock::time_point now) {
  if (question_ && now >= question_->deadline) judge();
}

void Root::tell(Rank except, Message message) {
  const auto shared = std::make_shared<const Message>(std::move(message));
  for (size_t rank = 0; rank < seats_.size(); ++rank)
    if (static_cast<Rank>(rank) != except && !seats_[rank].gone) send_(static_cast<Rank>(rank), shared);
}

// The first failure is the one that everybody hears of; what follows from it is noise.
void Root::fail(Rank except, Code code, std::string_view text) {
  if (std::exchange(failed_, true)) return;
  question_.reset();
  tell(except, failure_message(code, text));
}

}  // namespace gyre::transport::bootstrap
