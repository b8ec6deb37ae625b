#pragma once
#include <string_view>

namespace gyre {

inline constexpr std::string_view version = "0.1.0";
/// Who profiles are made by and hold for: the version, and a number to be raised when what was measured or chosen before no longer holds,
/// as with another algorithm, price, constant, bound of a direct form or default of slots. Tests know of most
/// (test/topo/profile_version_test.cpp, test/engine/direct_choices_test.cpp).
inline constexpr std::string_view profile_version = "0.1.0+4";
static_assert(profile_version.starts_with(version) && profile_version[version.size()] == '+');

}  // namespace gyre
