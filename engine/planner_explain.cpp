#include <fmt/format.h>

#include "engine/planner.h"

namespace gyre::engine {
namespace {

constexpr std::string_view by_calls = "found by the calls";

std::string in_us(double seconds) { return fmt::format(", predicted {:.2f} us", seconds * 1e6); }

// Where a call has both, calls may find either faster.
std::string_view when_it_runs(const DirectPlan& plan, const DirectForm& form, BufferKind kind) {
  if (plan.contested && kind == BufferKind::ordinary) return "runs where it is found faster by the calls";
  if (&form == plan.form(kind)) return "runs";
  return form.schedule->staged ? "runs where no buffer is of the shared heap" : "runs where all buffers are of the shared heap";
}

}  // namespace

std::string_view Planner::form_name(const DirectForm& form, const DirectPlan& plan, BufferKind kind) {
  return form.schedule->staged ? "staged" : topo::name(plan.access(form, kind));
}

std::vector<topo::DirectCandidate> Planner::direct_candidates(const Planned& planned, BufferKind kind) const {
  std::vector<topo::DirectCandidate> all;
  if (!planned.direct) return all;
  const DirectPlan& plan = *planned.direct;
  const bool straight = plan.read && kind == BufferKind::ordinary;
  for (const auto* form : {&plan.staged, &plan.read, &plan.mapped}) {
    if (!*form || (form == &plan.read && !straight)) continue;
    if (straight && form == &plan.mapped && !plan.bounced) continue;
    if (straight && form != &plan.read && !plan.contested) continue;  // what is read straight needs no copy
    topo::DirectCandidate out{(*form)->family(), form_name(**form, plan, kind), {}, {}, when_it_runs(plan, **form, kind)};
    const auto priced = price(**form, plan, kind);
    if (priced) {
      out.price = *priced;
    } else {
      out.refused = priced.error().what;
    }
    all.push_back(std::move(out));
  }
  return all;
}

std::string Planner::explain(const Call& call, BufferKind kind) {
  const auto found = planned(call);
  const topo::Query asked = query(circumstances_, normal(call), !found || !(*found)->rarely_by_messages());
  topo::Choice choice = topo::choose(asked, profiles_);
  if (found) refuse(choice, circumstances_, (*found)->call, (*found)->excluded);
  return topo::explain(asked, choice, found ? direct_candidates(**found, kind) : std::vector<topo::DirectCandidate>());
}

std::string Planner::way(const Planned& planned, BufferKind kind) const {
  if (planned.form(kind) != nullptr) return {};
  std::string words = along(planned.messages->orders());
  const auto& ports = circumstances_.ports;
  if (!words.empty() && !ports.empty()) words += fmt::format(" (ports near these: {})", fmt::join(ports, ", "));
  return words;
}

// What carries the call where no direct form does: the best of them, or what was named.
std::string Planner::by_messages(const Planned& planned) {
  topo::Choice choice = topo::choose(query(circumstances_, planned.call, !planned.rarely_by_messages()), profiles_);
  refuse(choice, circumstances_, planned.call, planned.excluded);
  const topo::Candidate* const best = planned.messages != nullptr ? choice.cheapest(planned.messages->schedule().family) : choice.best();
  return best == nullptr ? "none by messages" : fmt::format("by messages {}{}", best->family, in_us(topo::predicted(*best)));
}

std::string Planner::outcome(const Planned& planned, BufferKind kind) {
  const DirectForm* const form = planned.form(kind);
  if (form == nullptr) {
    const auto us = predicted_us(planned.call, kind);
    return fmt::format("{} runs{}{}", planned.algorithm(kind), way(planned, kind), us ? in_us(*us / 1e6) : "");
  }
  const auto described = [&](const DirectForm& one, std::string_view runs) {
    const auto priced = price(one, *planned.direct, kind);
    return fmt::format("{}{}, {}{}", one.family(), runs, form_name(one, *planned.direct, kind), priced ? in_us(priced->seconds) : "");
  };
  if (!planned.contested(kind)) return fmt::format("{}; {}", described(*form, " runs"), by_messages(planned));
  const DirectForm* const copies = planned.copies();
  const std::string straight = described(*form, "");
  if (copies == nullptr) return fmt::format("{}, or {}: {}", straight, by_messages(planned), by_calls);
  return fmt::format("{}, or {}: {}; {}", straight, described(*copies, ""), by_calls, by_messages(planned));
}

std::string Planned::counted(BufferKind kind) const {
  if (!contested(kind)) return std::string(algorithm(kind));
  const DirectForm* const with = copies();
  const std::string_view straight = algorithm(kind), copied = with != nullptr ? with->family() : messages->schedule().family;
  if (copied == straight) return fmt::format("{}, attached or bounced, {},", straight, by_calls);
  return fmt::format("{} or {}, {},", straight, copied, by_calls);
}

}  // namespace gyre::engine
