#include "test/plugin/rim.h"

#include <cstdarg>
#include <cstdio>

namespace gyre::plugin {

std::vector<LoggedLine>& logged() {
  static std::vector<LoggedLine> lines;
  return lines;
}

void keep_line(ncclDebugLogLevel level, unsigned long flags, const char* file, int, const char* format, ...) {
  char text[5000];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  logged().push_back({level, flags, file, text});
}

Rim::Rim() {
  fake = FakeNet{};
  logged().clear();
  start_log(keep_line);
}
Rim::~Rim() {
  end_log();
  fake = FakeNet{};
}

}  // namespace gyre::plugin
