// What ranks on some hosts tell of themselves, as far as tests need it.
#pragma once
#include <string>
#include <vector>

#include "engine/facts.h"

namespace gyre::test {

inline std::vector<engine::Facts> on(const std::vector<std::string>& hosts) {
  std::vector<engine::Facts> facts(hosts.size());
  for (size_t i = 0; i < hosts.size(); ++i) facts[i].host = hosts[i];
  return facts;
}

}  // namespace gyre::test
