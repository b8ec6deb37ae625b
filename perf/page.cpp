#include "perf/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/version.h"
#include "perf/chart.h"
#include "perf/commit.h"
#include "perf/picture.h"
#include "schedule/svg.h"

namespace gyre::perf {
namespace {

using schedule::svg::escaped;

constexpr std::string_view page_style = R"(
body { font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; color: #111; background: #fff; max-width: 1280px; margin: 24px auto; padding: 0 16px }
h1 { font-size: 24px } h2 { font-size: 19px; margin-top: 40px }
svg { max-width: 100%; height: auto; display: block }
.table { overflow-x: auto }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: 3px 9px; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap }
th { vertical-align: bottom; background: #f4f4f4 } th.left, td.left { text-align: left }
td.fastest { font-weight: 700 } td.chosen { background: #f8f2a0 }
.small { color: #444; font-size: 13px }
)";

std::string cell(const std::string& text, std::string_view kind = {}) {
  return kind.empty() ? fmt::format("<td>{}</td>", escaped(text)) : fmt::format("<td class=\"{}\">{}</td>", kind, escaped(text));
}
std::string us(double value) { return fmt::format("{:.{}f}", value, value < 100 ? 2 : value < 1000 ? 1 : 0); }

// Columns of what was chosen, where that is known.
struct PageColumns {
  bool chosen = false, in_place = false, predicted = false, series = true;

  explicit PageColumns(const Section& section) : chosen(!section.chosen.empty()), series(!section.series_are_of_chosen) {
    for (const Chosen& c : section.chosen) {
      in_place = in_place || c.in_place_us;
      predicted = predicted || c.predicted_us;
    }
  }
};

std::string head(const Section& section, const PageColumns& columns) {
  std::string out = "<tr><th>size</th>";
  if (columns.chosen) out += "<th class=\"left\">chosen</th><th>time<br>(µs)</th>";
  if (columns.in_place) out += "<th>in place<br>(µs)</th>";
  if (columns.chosen) out += section.bus_factor > 0 ? "<th>busbw<br>(GB/s)</th>" : "<th>algbw<br>(GB/s)</th>";
  if (columns.predicted) out += "<th>predicted<br>(µs)</th><th>error</th>";
  for (const Series& s : section.series) {
    if (columns.series) out += fmt::format("<th>{}<br>(µs)</th>", escaped(s.label));
  }
  return out + "</tr>\n";
}

std::string chosen_cells(const Section& section, const PageColumns& columns, const Chosen* chosen) {
  if (chosen == nullptr) {
    const int cells = 3 + (columns.in_place ? 1 : 0) + (columns.predicted ? 2 : 0);
    return fmt::format("<td colspan=\"{}\"></td>", cells);
  }
  const double factor = section.bus_factor > 0 ? section.bus_factor : 1;
  std::string out = cell(chosen->algorithm, "left") + cell(us(chosen->mark.us));
  if (columns.in_place) out += cell(chosen->in_place_us ? us(*chosen->in_place_us) : "");
  out += cell(fmt::format("{:.3g}", factor * static_cast<double>(chosen->mark.bytes) / chosen->mark.us / 1e3));
  if (!columns.predicted) return out;
  if (!chosen->predicted_us) return out + "<td></td><td></td>";
  return out + cell(us(*chosen->predicted_us)) + cell(fmt::format("{:+.0f} %", 100 * (*chosen->predicted_us / chosen->mark.us - 1)));
}

std::string row(const Section& section, const PageColumns& columns, size_t bytes) {
  const auto found = std::find_if(section.chosen.begin(), section.chosen.end(), [&](const Chosen& c) { return c.mark.bytes == bytes; });
  const Chosen* chosen = found == section.chosen.end() ? nullptr : &*found;
  std::string out = "<tr>" + cell(size_text(bytes));
  if (columns.chosen) out += chosen_cells(section, columns, chosen);
  double least = INFINITY;
  for (const Series& s : section.series) {
    if (const Mark* m = s.at(bytes)) least = std::min(least, m->us);
  }
  for (const Series& s : section.series) {
    if (!columns.series) continue;
    const Mark* m = s.at(bytes);
    if (m == nullptr) {
      out += "<td></td>";
      continue;
    }
    const std::string kind =
        fmt::format("{}{}", m->us <= least ? "fastest " : "", chosen != nullptr && chosen->algorithm == s.label ? "chosen" : "");
    out += cell(us(m->us), kind);
  }
  return out + "</tr>\n";
}

std::string section_text(const Section& section) {
  std::string out = fmt::format("<h2>{}</h2>\n<p>", escaped(section.title));
  for (const std::string& sentence : section.sentences) out += escaped(sentence) + " ";
  out += "</p>\n" + picture_of(section, false);
  const PageColumns columns(section);
  out += "<div class=\"table\"><table>\n" + head(section, columns);
  for (const size_t bytes : section.sizes()) out += row(section, columns, bytes);
  out += "</table></div>\n";
  if (columns.series && section.series.size() > 1) {
    out += fmt::format("<p class=\"small\">Bold: the fastest of a size{}.</p>\n", columns.chosen ? "; shaded: the chosen one" : "");
  }
  for (const std::string& source : section.sources) out += fmt::format("<p class=\"small\">{}</p>\n", escaped(source));
  return out;
}

}  // namespace

std::string page_of(std::span<const Section> sections) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n"
      "<title>{}</title>\n<style>{}</style></head><body>\n<h1>Collectives: time and bandwidth over size</h1>\n"
      "<p>Every point is the median time of one call, out of place, between ranks that begin together; bus bandwidth is nccl-tests': bytes "
      "over "
      "time, times the part of them that every link has to carry. Both axes are logarithmic, so that equal distances are equal "
      "ratios.</p>\n",
      escaped(sections.front().title), page_style);
  for (const Section& section : sections) out += section_text(section);
  return out + fmt::format("<p class=\"small\">Drawn by gyre-perf {} ({}).</p>\n</body></html>\n", version, commit);
}

}  // namespace gyre::perf
