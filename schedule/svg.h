// A few elements of SVG, as text; coordinates have a tenth of a pixel.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace gyre::schedule::svg {

inline std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  }
  return out;
}

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

/// `style`: attributes, each with a blank before it; `title`: what is shown under the pointer, empty: nothing.
inline std::string rect(const Box& box, std::string_view style, std::string_view title = {}) {
  const std::string at =
      fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"{}", box.x, box.y, box.width, box.height, style);
  return title.empty() ? at + "/>\n" : fmt::format("{}><title>{}</title></rect>\n", at, escaped(title));
}
inline std::string line(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"{}/>\n", x1, y1, x2, y2, style);
}
inline std::string text(double x, double y, std::string_view words, std::string_view style = {}) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, style, escaped(words));
}
/// What follows, until "</g>", has `title` under the pointer.
inline std::string group(std::string_view title) { return title.empty() ? "<g>\n" : fmt::format("<g><title>{}</title>\n", escaped(title)); }

}  // namespace gyre::schedule::svg
