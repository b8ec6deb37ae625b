// What profiles are made of: when it changes, those of before hold no longer.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/config.h"
#include "base/hash.h"
#include "base/version.h"
#include "schedule/print.h"
#include "test/catch.h"
#include "test/topo/shapes.h"
#include "topo/constants.h"
#include "topo/select.h"

using namespace gyre;
using namespace gyre::topo;

namespace {

std::string all_schedules() {
  std::string all;
  for (const int ranks : {2, 5, 8}) {
    test::each_shape(ranks, [&](const Family& family, const Shape& shape) {
      all += fmt::format("{} {}\n{}", family.name, text(shape), schedule::print(*make(family.name, shape)));
    });
  }
  return all;
}

/// Of a machine whose costs are all different, in three digits.
std::string all_prices() {
  std::string all;
  Profiles profiles;
  Query query;
  query.ranks = 8;
  query.channels = 2;
  query.costs.link = {schedule::LinkClass{"near", 1e-6, 1e-10, 3e-7, false, {}}, schedule::LinkClass{"far", 7e-6, 5e-10, 9e-7, false, {}}};
  query.costs.rank = {2e-10, 1.3e-10, 2e-8};
  for (const Collective collective : all_collectives()) {
    for (const int per_node : {0, 1, 4}) {
      for (const double bytes : {8.0, 65536.0, 16777216.0}) {
        query.collective = collective;
        query.placement = {per_node};
        query.block_bytes = bytes;
        for (const Candidate& candidate : choose(query, profiles).candidates)
          all += fmt::format("{} {:.3g} {}\n", candidate.family, predicted(candidate), candidate.refused);
      }
    }
  }
  return all;
}

void leave_out_words(nlohmann::json& value) {
  for (const char* words : {"about", "origin"})
    if (value.is_object()) value.erase(words);
  if (value.is_structured())
    for (nlohmann::json& part : value) leave_out_words(part);
}

/// The figures, by which calls are made where no file says others; not where they are from.
std::string all_constants() {
  nlohmann::json constants = nlohmann::json::parse(*constants_text(""));
  leave_out_words(constants);
  return constants.dump();
}

}  // namespace

TEST_CASE(
    "who changes schedules, prices, constants or defaults of slots raises the number in profile_version, and notes what has it here") {
  const std::string defaults = fmt::format("{} {} {}", *Config().slot_bytes, *Config().slots, *Config().channels);
  const std::string all = all_schedules() + all_prices() + all_constants() + defaults;
  CHECK(fmt::format("{} {:016x}", profile_version, fnv1a(all)) == "0.1.0+4 39b66c1408f3bacd");
}
