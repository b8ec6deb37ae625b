#pragma once
#include <string_view>

namespace gyre {

inline constexpr std::string_view version = "0.1.0";

}  // namespace gyre
