// From which sizes on which direct form runs: when that changes, what profiles say of gyre's own times holds no longer.
#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/version.h"
#include "engine/direct_plan.h"
#include "test/catch.h"
#include "test/engine/direct_bounds.h"

using namespace gyre;
using namespace gyre::engine;

namespace {

constexpr size_t bounce_room = 2 << 20, largest_count = size_t{1} << 27;

struct Sharing {
  int ranks;
  bool crowded, attached, bounces, may_stage, may_map;
};

std::string forms_of(DirectForms& forms, const Sharing& where, const Call& call) {
  const DirectPlan plan = *forms.plan(call, false, where.may_stage, where.may_map);
  return fmt::format("{}{}{}{}{}", plan.staged ? "s" : "", plan.mapped ? "m" : "", plan.bounced ? "b" : "", plan.read ? "r" : "",
                     plan.contested ? "c" : "");
}

/// Every size from which on others can run: "0 s, 513 b".
std::string sizes_of(DirectForms& forms, const Sharing& where, Call call) {
  const auto at = [&](size_t count) {
    call.count = count;
    return forms_of(forms, where, call);
  };
  std::string last = at(0), out = "0 " + last;
  for (size_t from = 0, to = 1; to <= largest_count; from = to, to += std::max<size_t>(1, to / 3)) {
    while (at(to) != last) {
      size_t same = from, other = to;
      while (other - same > 1) {
        const size_t middle = same + (other - same) / 2;
        (at(middle) == last ? same : other) = middle;
      }
      last = at(other);
      out += fmt::format(", {} {}", other, last);
      from = other;
    }
  }
  return out;
}

std::string all_choices() {
  std::string all;
  for (const int ranks : {2, 3, 8}) {
    for (unsigned bits = 0; bits < 32; ++bits) {
      const auto is = [&](unsigned bit) { return (bits >> bit & 1) != 0; };
      const Sharing where{ranks, is(0), is(1), is(2), is(3), is(4)};
      DirectForms forms(0, ranks, test::direct_bounds(where.crowded), where.bounces ? bounce_room : 0, where.attached);
      for (const Collective collective : all_collectives()) {
        for (const DataType type : {DataType::int8, DataType::bfloat16, DataType::float32, DataType::float64}) {
          if (collective != Collective::all_reduce && type != DataType::int8) continue;  // by bytes
          all += fmt::format("{} of {} between {}{}{}{}{}{}: {}\n", name(collective), name(type), ranks, where.crowded ? ", crowded" : "",
                             where.attached ? ", attached" : "", where.bounces ? ", bounces" : "", where.may_stage ? ", may stage" : "",
                             where.may_map ? ", may map" : "", sizes_of(forms, where, {collective, 0, type, ReduceOp::sum, 0}));
        }
      }
    }
  }
  return all;
}

}  // namespace

TEST_CASE("who changes which direct form runs raises the number in profile_version, and notes what has it here") {
  const std::string all = all_choices();
  INFO(all);
  CHECK(fmt::format("{} {:016x}", profile_version, fnv1a(all)) == "0.1.0+4 0ecbde8a5f2c64fa");
}
