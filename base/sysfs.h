// Small files of the kernel's. They may be absent, unreadable or hold junk (drivers and containers differ): then nothing is known.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gyre::sysfs {

/// The first line. Empty: there is none, or reading it failed, as for the speed of an interface that is down.
std::string first_line(const std::filesystem::path& file);
/// The first line as a whole number, in decimal or after 0x in hexadecimal; empty: it is none, or negative.
std::optional<uint64_t> number(const std::filesystem::path& file);
/// What is in a folder: shorter names first, so that 9 is before 10, then by the alphabet. None where it can't be read.
std::vector<std::filesystem::path> entries(const std::filesystem::path& folder);

}  // namespace gyre::sysfs
