#include "schedule/verify.h"

#include <fmt/format.h>

#include <optional>

#include "schedule/flow.h"
#include "schedule/meaning.h"
#include "schedule/order.h"

namespace gyre::schedule {
namespace {

Error broken(const Schedule& schedule, const Conditions& conditions, const std::string& what) {
  constexpr std::string_view modes[] = {"", ", posted", ", mapped"};
  return Error{Code::internal, fmt::format("schedule {} of {} for {} ranks, {} channels ({} credits, {} slices{}{}{}): {}", schedule.family,
                                           name(schedule.collective), schedule.ranks, schedule.channels, conditions.credits,
                                           conditions.slices, conditions.in_place ? ", in place" : "",
                                           conditions.ordered ? ", ordered" : "", modes[static_cast<size_t>(conditions.mode)], what)};
}

}  // namespace

// What was found out already; by in_place, and by mode or by ordered.
struct Verifier::Known {
  explicit Known(const Schedule& schedule) : wiring(schedule) {}

  Wiring wiring;
  std::optional<Meaning> meanings[2][2];
  std::optional<std::string> races[2][3];
  std::vector<Announcer> announcers[2];
  std::optional<Conditions> buffered;  // the last that never got stuck: slots do not care where memory is shared
};

Verifier::Verifier(const Schedule& schedule) : schedule_(schedule), known_(std::make_unique<Known>(schedule)) {}
Verifier::Verifier(Verifier&&) noexcept = default;
Verifier::~Verifier() = default;

Result<Proof> Verifier::run(const Conditions& conditions) {
  if (conditions.credits < 1 || conditions.slices < 1) return broken(schedule_, conditions, "nothing can be sent");
  if (conditions.in_place && !schedule_.layout().has_in_place()) return broken(schedule_, conditions, "there is no in place");
  if (!known_->wiring.malformed().empty()) return broken(schedule_, conditions, known_->wiring.malformed());

  // The order first: what a schedule means is found in one interleaving, which stands for all if accesses are ordered.
  auto& race = known_->races[conditions.in_place][static_cast<size_t>(conditions.mode)];
  if (!race) race = unordered(schedule_, known_->wiring, conditions.mode, conditions.in_place);
  if (!race->empty()) return broken(schedule_, conditions, *race);

  auto& meaning = known_->meanings[conditions.in_place][conditions.ordered];
  if (!meaning) meaning = interpret(schedule_, known_->wiring, conditions.in_place, conditions.ordered);
  if (!meaning->fault.empty()) return broken(schedule_, conditions, meaning->fault);

  const bool buffered = conditions.mode == Mode::buffered;
  const auto& before = known_->buffered;
  if (buffered && before && before->credits == conditions.credits && before->slices == conditions.slices) return meaning->proof;
  const std::string stuck = deadlock(schedule_, known_->wiring, conditions, known_->announcers[conditions.in_place]);
  if (!stuck.empty()) return broken(schedule_, conditions, stuck);
  if (buffered) known_->buffered = conditions;
  return meaning->proof;
}

Result<Proof> verify(const Schedule& schedule, const Conditions& conditions) { return Verifier(schedule).run(conditions); }

}  // namespace gyre::schedule
