#include "engine/planner.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "engine/memory.h"
#include "schedule/sends.h"

namespace gyre::engine {
namespace {

constexpr size_t plans_kept = 64;
constexpr size_t slot_alignment = 4096;
constexpr std::string_view does_not_fit = "takes more operations than a stream has room for";

}  // namespace

std::string_view Planned::algorithm(BufferKind kind) const {
  const DirectForm* const directly = form(kind);
  return directly != nullptr ? directly->family() : std::string_view(messages->schedule().family);
}

void Planner::say_instead(const Call& call, const Choice& choice) {
  if (choice.instead.empty()) return;
  std::string said =
      fmt::format("{} runs {} and not {}: {}", name(call.collective), choice.family, circumstances_.algorithm, choice.instead);
  if (std::find(said_.begin(), said_.end(), said) != said_.end()) return;
  log::info("{}", said);
  said_.push_back(std::move(said));
}

Result<std::shared_ptr<const Proven>> Planner::proven(const Choice& choice) {
  const std::string key = engine::key(choice);
  if (const auto known = schedules_.find(key); known != schedules_.end()) return known->second;
  auto made = GYRE_TRY(prove(choice.family, choice.shape, slots_, choice.orders, circumstances_.missing));
  if (made->schedule.channels > channels_) {
    return Error{Code::internal, fmt::format("{} has {} channels, ranks are connected on {}", key, made->schedule.channels, channels_)};
  }
  return schedules_.emplace(key, std::move(made)).first->second;
}

void Planner::only_by_messages(const Room& room) {
  only_by_messages();
  schedules_.clear();
  unfit_.clear();
  slots_ = room.slots;
  room_ = room;
  circumstances_.cutting.slot_bytes = slots_.bytes;
  circumstances_.cutting.slices = schedule::slices_under_way(slots_.credits);
  circumstances_.cutting.credits = slots_.credits;
}

// Messages are longer than slots only where the plan fits by that, and the room, divided among its connections, has more for each.
Result<Planner::CutPlan> Planner::cut(std::shared_ptr<const Proven> proven, const Call& call) const {
  const auto made = [&](size_t slot_bytes) -> Result<CutPlan> {
    Plan plan = GYRE_TRY(Plan::make(proven, call, slot_bytes));
    const bool fits = fits_ == nullptr || fits_(plan);
    return CutPlan{std::move(plan), fits};
  };
  if (room_.bytes == 0) return made(slots_.bytes);
  const uint32_t received = room_.received ? schedule::most_receives(proven->schedule) : 0;
  const size_t each = room_.bytes / slots_.credits / std::max({1U, schedule::most_sends(proven->schedule), received});
  const size_t most = each / slot_alignment * slot_alignment;
  CutPlan plan = GYRE_TRY(made(std::min(slots_.bytes, most)));
  if (most <= slots_.bytes || plan.fits) return plan;
  CutPlan longer = GYRE_TRY(made(most));
  return longer.fits ? std::move(longer) : std::move(plan);
}

// The best whose scratch there may be, and of these the best that fits. All ranks know of the same bounds, so that they choose alike.
Status Planner::plan_messages(Planned& made) {
  const Call& call = made.call;
  Excluded& excluded = made.excluded;
  excluded = unfit_;
  std::optional<Plan> best;  // that does not fit
  double best_seconds = 0;
  for (;;) {
    const auto choice = choose(circumstances_, call, profiles_, excluded, !made.rarely_by_messages());
    if (best && (!choice || choice->seconds > worth_fitting_ * best_seconds)) {
      std::erase_if(excluded, [](const auto& one) { return one.second == does_not_fit; });
      made.messages = std::make_unique<Plan>(*std::move(best));
      return {};
    }
    if (!choice) return choice.error();
    auto schedule = proven(*choice);
    const bool may_not_fit = !choice->orders.empty() || !circumstances_.missing.empty();
    if (!schedule && schedule.error().code == Code::invalid_usage && may_not_fit) {
      unfit_.emplace(key(*choice), schedule.error().what);
      excluded.emplace(key(*choice), schedule.error().what);
      continue;
    }
    auto made_of_it = schedule ? cut(*std::move(schedule), call) : Result<CutPlan>(schedule.error());
    if (!made_of_it && best) {  // which will do
      excluded.emplace(key(*choice), made_of_it.error().what);
      continue;
    }
    auto [plan, fits] = GYRE_TRY(std::move(made_of_it));
    if (plan.scratch_bytes() > circumstances_.scratch_room) {
      excluded.emplace(key(*choice), fmt::format("needs {} bytes of scratch, GYRE_MEMORY_BYTES={} leaves {}", plan.scratch_bytes(),
                                                 circumstances_.memory_bytes, circumstances_.scratch_room));
    } else if (circumstances_.algorithm == "auto" && !fits) {
      excluded.emplace(key(*choice), does_not_fit);
      if (!best) best = std::move(plan), best_seconds = choice->seconds;
    } else {
      say_instead(call, *choice);
      made.messages = std::make_unique<Plan>(std::move(plan));
      return {};
    }
  }
}

// Unless another algorithm is asked for.
Result<std::optional<DirectPlan>> Planner::directly(const Call& call) {
  const std::string& asked = circumstances_.algorithm;
  // Each rank's scalar is known to itself only.
  if (!direct_ || call.op == ReduceOp::premul_sum) return std::optional<DirectPlan>();
  const topo::Family* family = topo::family_named(asked);
  if (family != nullptr && !topo::refusal(*family, {call.collective, ranks_, 1, call.root, {}}).empty()) return std::optional<DirectPlan>();
  DirectPlan plan = GYRE_TRY(forms_.plan(call, must_be_ordered(circumstances_, call), asked == "auto" || asked == "one_shot",
                                         asked == "auto" || asked == "two_shot"));
  plan.contested = plan.contested && contests_;
  return plan.staged || plan.mapped ? std::optional(std::move(plan)) : std::nullopt;
}

Result<Planned*> Planner::planned(const Call& any) {
  const Call call = normal(any);
  const auto known = std::find_if(plans_.begin(), plans_.end(), [&](const auto& plan) { return plan->call == call; });
  if (known != plans_.end()) {
    if (known != plans_.begin()) std::rotate(plans_.begin(), known, known + 1);
    return plans_.front().get();
  }
  if (auto refusal = refuse(any, ranks_)) return *std::move(refusal);
  auto made = std::make_shared<Planned>(call, extent(call, rank_, ranks_), GYRE_TRY(directly(call)));
  // Also where a direct form may be declined.
  if (!made->staged() || made->direct->mapped) GYRE_TRY(plan_messages(*made));
  if (plans_.size() == plans_kept) plans_.pop_back();
  plans_.insert(plans_.begin(), std::move(made));
  return plans_.front().get();
}

Result<const Plan*> Planner::plan(const Call& call) {
  Planned* found = GYRE_TRY(planned(call));
  if (found->messages == nullptr) GYRE_TRY(plan_messages(*found));
  return found->messages.get();
}

Result<std::string> Planner::algorithm(const Call& call, BufferKind kind) { return std::string(GYRE_TRY(planned(call))->algorithm(kind)); }

void Planner::prefer(const Preference& preference) {
  circumstances_.algorithm = preference.algorithm;
  circumstances_.grid = preference.grid;
  plans_.clear();
}

Result<double> Planner::predicted_us(const Call& call, BufferKind kind) {
  const Planned* found = GYRE_TRY(planned(call));
  if (const DirectForm* form = found->form(kind); form != nullptr) return GYRE_TRY(price(*form, *found->direct, kind)).seconds * 1e6;
  const Plan* chosen = GYRE_TRY(plan(call));
  const topo::Query asked = query(circumstances_, chosen->call());
  const topo::Shape& shape = chosen->shape();
  const topo::Choice priced = topo::choose(asked, profiles_);
  for (const topo::Candidate& c : priced.candidates) {
    const bool same = c.family == chosen->schedule().family && c.shape.grid == shape.grid && c.shape.channels == shape.channels;
    if (same && c.refused.empty()) return topo::predicted(c) * 1e6;
  }
  const auto& profile = profiles_.of(chosen->schedule().family, shape, asked.placement, topo::missing_pairs(asked.overrides));
  if (!profile) return profile.error();
  return topo::price(*profile, asked.costs, asked.block_bytes, asked.cutting).seconds * 1e6;
}

Result<topo::Price> Planner::price(const DirectForm& form, const DirectPlan& plan, BufferKind kind) const {
  const topo::Costs& costs = circumstances_.costs;
  if (!costs.direct) return Error{Code::invalid_usage, "the constants have no costs of ranks that reach each other's memory"};
  const auto block_bytes = static_cast<double>(plan.call.count * size_of(plan.call.type));
  const topo::BufferAccess access = plan.access(form, kind);
  topo::Price price = topo::price(*form.schedule, *costs.direct, block_bytes, costs.processors_per_node, access);
  if (access != topo::BufferAccess::bounced) return price;
  const double meetings = price.latency * static_cast<double>(plan.bounced->pieces - 1);
  price.latency += meetings;
  price.seconds += meetings;
  return price;
}

}  // namespace gyre::engine
