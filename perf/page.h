// Sections as one HTML page: pictures, and beneath each its numbers as a table. One file, without scripts or anything from elsewhere.
#pragma once
#include <span>
#include <string>

#include "perf/section.h"

namespace gyre::perf {

std::string page_of(std::span<const Section>);

}  // namespace gyre::perf
