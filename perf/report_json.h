// What is written about a run beside its figures, so that they can be had again.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace gyre::perf {

/// gyre's version, the command, the date, the machine.
nlohmann::json about_run(const std::string& command);

}  // namespace gyre::perf
