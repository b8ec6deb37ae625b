// How the slots refuse an argument of NCCL's, naming it. Kept out of the hot path.
#pragma once
#include <fmt/format.h>

#include <string>

#include "base/result.h"

namespace gyre::plugin {

[[gnu::cold, gnu::noinline]] inline Error missing(const char* argument) {
  return Error{Code::invalid_argument, std::string(argument) + " is NULL"};
}
[[gnu::cold, gnu::noinline]] inline Error negative_size(int size) {
  return Error{Code::invalid_argument, fmt::format("a size is {}, must not be negative", size)};
}

}  // namespace gyre::plugin
