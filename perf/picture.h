// Sections as one SVG: two panels each, time and bandwidth over size, and a legend. Without scripts, fonts or files from elsewhere.
#pragma once
#include <span>
#include <string>

#include "perf/section.h"

namespace gyre::perf {

/// A picture of one section, with title and sentences; or, for a page that has them as text, without.
std::string picture_of(const Section&, bool with_words);
/// All, one above the other.
std::string picture_of(std::span<const Section>);

}  // namespace gyre::perf
