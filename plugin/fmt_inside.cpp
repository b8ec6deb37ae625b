// fmt's own functions, compiled into the .so: a program that opens it may lack libfmt, or have another one. fmt is used as a header here
// only, since that costs seconds in each source; without optimization the compiler keeps each inline function that formatting calls as a
// function of its own, under the name by which the other sources ask for it. A test looks that none is left open.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

#include <string>

namespace gyre::plugin {

/// Never called; uses what all of gyre's formatting comes down to.
std::string fmt_inside(fmt::string_view format, fmt::format_args arguments);
std::string fmt_inside(fmt::string_view format, fmt::format_args arguments) { return fmt::vformat(format, arguments); }

}  // namespace gyre::plugin
