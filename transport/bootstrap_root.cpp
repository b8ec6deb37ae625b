#include "transport/bootstrap_root.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "transport/bootstrap_text.h"

namespace gyre::transport::bootstrap {

namespace {

std::optional<std::vector<Pair>> take_pairs(std::string_view& payload) {
  const auto count = bootstrap::take<uint32_t>(payload);
  if (!count || *count > payload.size() / (5 * sizeof(uint64_t))) return std::nullopt;
  std::vector<Pair> pairs;
  while (pairs.size() < *count) {
    std::array<uint64_t, 5> numbers{};
    for (uint64_t& number : numbers) number = *bootstrap::take<uint64_t>(payload);
    pairs.push_back({static_cast<Rank>(numbers[0]), numbers[1], numbers[2], numbers[3], numbers[4]});
  }
  return pairs;
}

}  // namespace

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
    case Kind::stay_away:
      seat(from).word = std::move(message.payload);
      return end_with_parts();
    case Kind::give_up:
      return end_without_parts(payload);
    case Kind::describe:
      return take_description(from, payload, now);
    case Kind::no_call:
      seat(from).call.reset();
      return;
    case Kind::history:
      return take_history(from, payload);
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
  if (++seat(from).gathers <= gathered_) return;  // it has ended without parts, and this rank was told
  seat(from).part = std::move(bytes);
  seat(from).part_after = recalls_;
  fail_if_left_behind();
  end_with_parts();
}

// When all have come that do not stay away.
void Root::end_with_parts() {
  const auto waits = [](const Seat& s) { return s.part.has_value(); };
  if (failed_ || std::any_of(seats_.begin(), seats_.end(), is_missing) || std::none_of(seats_.begin(), seats_.end(), waits)) return;
  for (size_t rank = 0; rank < seats_.size(); ++rank) {
    Message part{Kind::part, {}};
    put(part.payload, static_cast<Rank>(rank));
    part.payload += seats_[rank].word ? *seats_[rank].word : *seats_[rank].part;
    seats_[rank].part.reset();
    tell(-1, std::move(part));
  }
  ++gathered_;
}

// Nobody must have what another has not: where the last part has come before, all have been sent them.
void Root::end_without_parts(std::string_view payload) {
  const auto gather = bootstrap::take<uint64_t>(payload);
  if (failed_ || gather != gathered_ + 1) return;
  ++gathered_;
  std::vector<Rank> missing;
  for (size_t rank = 0; rank < seats_.size(); ++rank) {
    if (is_missing(seats_[rank])) missing.push_back(static_cast<Rank>(rank));
    seats_[rank].part.reset();
  }
  Message message{Kind::no_parts, {}};
  put(message.payload, *gather);
  message.payload += fmt::format("{} did not come to a call of all within {}", ranks_text(missing), payload);
  tell(-1, std::move(message));
}

void Root::take_description(Rank from, std::string_view payload, Clock::time_point now) {
  const auto number = bootstrap::take<uint64_t>(payload);
  const auto plan = bootstrap::take<uint64_t>(payload);
  const auto urgent = bootstrap::take<uint8_t>(payload);
  const auto pairs = take_pairs(payload);
  if (!number || !plan || !urgent || !pairs || failed_) return;
  seat(from).call = Call{*number, *plan, std::string(payload), *pairs};
  seat(from).answered = true;
  ++seat(from).described;
  if (recall_ && recall_->waits) send_recall();
  if (question_) return judge_if_answered();
  const Circle circle = find_circle(calls());
  if (circle.ranks.empty()) circle_since_.clear();
  if (!circle.ranks.empty() && (*urgent != 0 || still(circle))) return fail(-1, Code::invalid_usage, circle.text);
  const bool differs = !seat(from).call->among_some() && std::any_of(seats_.begin(), seats_.end(), [&](const Seat& s) {
    return s.call && !s.call->among_some() && s.call->number == *number && s.call->plan != *plan;
  });
  const bool question = differs || *urgent != 0;
  if (question) recall_.reset();  // one that is under way may be older than the calls in question
  recall(from, now);
  if (question) ask(from, *number, now);
}

// A rank may have left what it has described, and word of that be on its way: a circle is one when all its ranks describe it again.
bool Root::still(const Circle& circle) {
  if (circle_since_.empty()) {
    for (const Seat& s : seats_) circle_since_.push_back(s.described);
  }
  return std::all_of(circle.ranks.begin(), circle.ranks.end(),
                     [&](Rank rank) { return seat(rank).described > circle_since_[static_cast<size_t>(rank)]; });
}

// A rank that has described the call in question already need not do so again: it may be waiting elsewhere by now.
void Root::ask(Rank from, uint64_t call, Clock::time_point now) {
  question_ = Question{call, now + answer_limit};
  const auto message = std::make_shared<const Message>(Message{Kind::ask, {}});
  for (size_t rank = 0; rank < seats_.size(); ++rank) {
    Seat& s = seats_[rank];
    s.answered = static_cast<Rank>(rank) == from || (s.call && s.call->number == call && !s.call->among_some());
    if (!s.answered && !s.gone) send_(static_cast<Rank>(rank), message);
  }
  judge_if_answered();
}

void Root::judge_if_answered() {
  if (question_ && !recall_ && std::all_of(seats_.begin(), seats_.end(), [](const Seat& s) { return s.answered || s.gone; })) judge();
}

void Root::judge() {
  const Question question = *std::exchange(question_, std::nullopt);
  std::vector<Standing> standings;
  for (const Seat& s : seats_) standings.push_back({s.answered ? s.call : std::nullopt, s.gone});
  fail(-1, Code::invalid_usage, compare_calls(question.call, standings));
}

// Answered before a question is judged: calls that differ explain what follows from them. One at a time, since ranks that wait come in a
// crowd.
void Root::recall(Rank by, Clock::time_point now) {
  if (recall_) return;
  recall_ = Recall{by, now + come_limit};
  send_recall();
}

void Root::send_recall() {
  recall_->waits = false;
  Message message{Kind::recall, {}};
  put(message.payload, ++recalls_);
  tell(-1, std::move(message));
}

void Root::take_history(Rank from, std::string_view payload) {
  const auto question = bootstrap::take<uint64_t>(payload);
  if (!question || seat(from).gone) return;
  seat(from).made = bootstrap::take_history(payload);
  seat(from).recalled = *question;
  judge_if_recalled();
}

void Root::judge_if_recalled() {
  if (recall_ && std::all_of(seats_.begin(), seats_.end(), [&](const Seat& s) { return s.recalled == recalls_ || s.gone; }))
    judge_histories(false);
}

std::vector<const Root::Seat*> Root::not_come_to(uint64_t call) const {
  std::vector<const Seat*> late;
  for (const Seat& s : seats_) {
    if (!s.gone && (s.made.empty() || s.made.back().number < call)) late.push_back(&s);
  }
  return late;
}

// A verdict names all ranks, those included that come to the call within moments: not until the `last` time is it made without them.
void Root::judge_histories(bool last) {
  std::vector<std::vector<Made>> made;
  for (const Seat& s : seats_) made.push_back(s.made);
  const auto differs = first_difference(made);
  const auto late = differs && !last ? not_come_to(*differs) : std::vector<const Seat*>();
  if (!late.empty()) {
    recall_->waits = true;  // until another rank describes its call, or the deadline
    const auto has_come = [&](const Seat* s) { return s->call && !s->call->among_some() && s->call->number >= *differs; };
    if (std::any_of(late.begin(), late.end(), has_come)) send_recall();  // it had told its history before
    return;
  }
  const Recall recall = *std::exchange(recall_, std::nullopt);
  std::string wrong = compare_histories(made);
  if (wrong.empty()) wrong = skipped(recall.by);
  if (!wrong.empty()) return fail(-1, Code::invalid_usage, wrong);
  judge_if_answered();
}

// A rank that waits in an all_gather, which all ranks must join, does not come to the call in which another waits; of one that stays away
// it waits for nothing. What a rank was asked before its part came says nothing: it may have made that call since.
std::string Root::skipped(Rank waiting) const {
  const auto& call = seats_[static_cast<size_t>(waiting)].call;
  const std::vector<Made>& made = seats_[static_cast<size_t>(waiting)].made;
  if (seats_[static_cast<size_t>(waiting)].word || !call || call->among_some() || made.empty() || made.back().number < call->number)
    return {};
  for (size_t rank = 0; rank < seats_.size(); ++rank) {
    const Seat& s = seats_[rank];
    const bool told = s.recalled == recalls_ && s.recalled > s.part_after;
    if (!s.part || !told || (!s.made.empty() && s.made.back().number >= call->number)) continue;
    return fmt::format("calls are in different orders: rank {} waits for all ranks before call {}, rank {} waits in it ({})", rank,
                       call->number, waiting, call->text);
  }
  return {};
}

std::vector<std::optional<Call>> Root::calls() const {
  std::vector<std::optional<Call>> all;
  for (const Seat& s : seats_) all.push_back(s.gone ? std::nullopt : s.call);
  return all;
}

void Root::take_goodbye(Rank from) {
  Seat& leaving = seat(from);
  leaving.left = leaving.gone = true;
  leaving.part.reset();
  fail_if_left_behind();  // first, so that those who wait learn it even from a rank 0 that leaves
  Message message{Kind::left, {}};
  put(message.payload, from);
  tell(from, std::move(message));
  judge_if_recalled();
  judge_if_answered();
}

void Root::fail_if_left_behind() {
  std::vector<Rank> gone;
  bool waiting = false;
  for (size_t rank = 0; rank < seats_.size(); ++rank) {
    if (seats_[rank].left && !seats_[rank].word) gone.push_back(static_cast<Rank>(rank));
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
  if (recall_) return recall_->deadline;
  if (question_) return question_->deadline;
  return std::nullopt;
}

void Root::tick(Clock::time_point now) {
  if (recall_ && now >= recall_->deadline) judge_histories(true);
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
  recall_.reset();
  tell(except, failure_message(code, text));
}

}  // namespace gyre::transport::bootstrap
