#include "schedule/timeline.h"

#include <algorithm>
#include <map>
#include <set>

#include "schedule/print.h"
#include "schedule/svg.h"
#include "schedule/time_axis.h"

namespace gyre::schedule {
namespace {

constexpr double width = 1200;
constexpr double left = 150;  // of the axis
constexpr double right = 28;
constexpr double top = 104;      // of the lanes
constexpr double row = 18;       // of a strand's boxes
constexpr double strip = 5;      // of what the port sends
constexpr double gap = 22;       // between lanes, for the arrows
constexpr double narrowest = 3;  // a step that takes no time is seen too

struct Look {
  std::string_view operation;
  std::string_view meaning;
  std::string_view colour;
};
constexpr Look looks[] = {
    {"s", "send", "#4c78a8"},
    {"c", "copy", "#8a8f98"},
    {"cs", "copy, send", "#6f9bc8"},
    {"r", "receive", "#4f9d54"},
    {"rs", "receive, send", "#3d9c98"},
    {"rcs", "receive, copy, send", "#2c7f86"},
    {"rrc", "receive, reduce, copy", "#d99325"},
    {"rrs", "receive, reduce, send", "#d8692c"},
    {"rrcs", "receive, reduce, copy, send", "#bd4040"},
};
const Look& look_of(const Step& step) {
  const std::string wanted = operation(step);
  const auto* found = std::find_if(std::begin(looks), std::end(looks), [&](const Look& look) { return look.operation == wanted; });
  return found == std::end(looks) ? looks[1] : *found;
}

class Drawing {
 public:
  Drawing(const Schedule& schedule, const Network& network, const Simulation& simulation)
      : schedule_(schedule), network_(network), simulation_(simulation) {
    std::vector<double> rows(static_cast<size_t>(schedule.ranks));
    row_of_.resize(schedule.programs.size());
    for (size_t i = 0; i < schedule.programs.size(); ++i) {
      if (schedule.programs[i].steps.empty()) continue;
      row_of_[i] = rows[static_cast<size_t>(schedule.programs[i].rank)]++;
    }
    double y = top;
    for (const double count : rows) {
      lane_.push_back(y);
      strip_.push_back(y + std::max(1.0, count) * row + 1);
      y = strip_.back() + strip + gap;
    }
    bottom_ = y - gap + 10;
    for (const Stretch& stretch : simulation.path) {
      if (stretch.kind == Stretch::Kind::step) critical_steps_.insert(stretch.step);
      if (stretch.kind == Stretch::Kind::transfer || stretch.kind == Stretch::Kind::latency) {
        critical_messages_.insert({stretch.step, stretch.peer});
      }
    }
  }

  std::string text(const Headline& headline) const {
    const double height = bottom_ + 46;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#27313d\">\n",
        width, height);
    out +=
        "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\">"
        "<path d=\"M0,0.8 L8,4 L0,7.2 z\" fill=\"#5c6a7a\"/></marker>"
        "<marker id=\"critical\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\">"
        "<path d=\"M0,0.8 L8,4 L0,7.2 z\" fill=\"#111820\"/></marker></defs>\n";
    out += svg::rect({0, 0, width, height}, " fill=\"#ffffff\"");
    out += svg::text(24, 32, headline.title, " font-size=\"19\" font-weight=\"bold\"");
    out += svg::text(24, 52, headline.subtitle, " fill=\"#5c6a7a\"");
    return out + legend() + lanes() + axis() + sending() + arrows(false) + arrows(true) + boxes() + "</svg>\n";
  }

 private:
  double x(double seconds) const { return left + (simulation_.finish > 0 ? seconds / simulation_.finish : 0) * (width - left - right); }
  const Step& step_of(const StepTime& time) const { return schedule_.programs[time.program].steps[time.position.cursor.step]; }
  Rank rank_of(const StepTime& time) const { return schedule_.programs[time.program].rank; }

  std::string legend() const {
    std::set<std::string_view> used;
    for (const StepTime& time : simulation_.steps) used.insert(look_of(step_of(time)).operation);
    std::string out;
    double at = 24;
    const auto entry = [&](const std::string& sample, std::string_view words, double sample_width) {
      out += sample + svg::text(at + sample_width + 6, 78, words, " font-size=\"11\"");
      at += sample_width + 6 + 5.6 * static_cast<double>(words.size()) + 18;
    };
    for (const Look& look : looks) {
      if (used.count(look.operation) == 0) continue;
      const double sample = 12 + 6 * static_cast<double>(look.operation.size());
      entry(svg::rect({at, 67, sample, 15}, fmt::format(" rx=\"2.5\" fill=\"{}\"", look.colour)) +
                svg::text(at + sample / 2, 78, look.operation, " font-size=\"10\" fill=\"#ffffff\" text-anchor=\"middle\""),
            look.meaning, sample);
    }
    if (!simulation_.ports.empty()) entry(svg::rect({at, 72, 22, strip}, " fill=\"#b9cbe0\""), "port sends", 22);
    entry(svg::rect({at + 1, 68, 20, 13}, " rx=\"2.5\" fill=\"none\" stroke=\"#111820\" stroke-width=\"1.6\""), "critical path", 22);
    return out;
  }

  std::string lanes() const {
    std::string out;
    const bool nodes = std::any_of(network_.node_of.begin(), network_.node_of.end(), [](int node) { return node != 0; });
    for (Rank rank = 0; rank < schedule_.ranks; ++rank) {
      const auto lane = static_cast<size_t>(rank);
      const double middle = (lane_[lane] + strip_[lane] + strip) / 2;
      out += svg::rect({left, lane_[lane] - 4, width - left - right, strip_[lane] + strip - lane_[lane] + 8}, " fill=\"#f3f5f8\" rx=\"3\"");
      out += svg::text(24, middle + (nodes ? -2 : 4), fmt::format("rank {}", rank), " font-weight=\"bold\"");
      if (nodes) out += svg::text(24, middle + 11, fmt::format("node {}", network_.node(rank)), " font-size=\"10\" fill=\"#5c6a7a\"");
    }
    for (size_t i = 0; i < schedule_.programs.size() && schedule_.channels * schedule_.strands > 1; ++i) {
      const Program& program = schedule_.programs[i];
      if (program.steps.empty()) continue;
      const std::string label = schedule_.strands == 1    ? fmt::format("channel {}", program.channel)
                                : schedule_.channels == 1 ? fmt::format("strand {}", program.strand)
                                                          : fmt::format("ch {} strand {}", program.channel, program.strand);
      const double y = lane_[static_cast<size_t>(program.rank)] + row_of_[i] * row + row / 2 + 3;
      out += svg::text(left - 8, y, label, " font-size=\"9\" fill=\"#5c6a7a\" text-anchor=\"end\"");
    }
    return out;
  }

  std::string axis() const {
    std::string out;
    const TimeUnit unit = TimeUnit::of(simulation_.finish);
    for (const double mark : marks(simulation_.finish, 10)) {
      out += svg::line(x(mark), top - 8, x(mark), bottom_, " stroke=\"#d5dbe3\"");
      out += svg::text(x(mark), bottom_ + 16, fmt::format("{:g}", mark / unit.seconds), " font-size=\"11\" text-anchor=\"middle\"");
    }
    out += svg::line(left, bottom_, width - right, bottom_, " stroke=\"#5c6a7a\"");
    return out + svg::text((left + width - right) / 2, bottom_ + 34, fmt::format("time in {}", unit.name),
                           " font-size=\"11\" fill=\"#5c6a7a\" text-anchor=\"middle\"");
  }

  std::string sending() const {
    std::string out;
    for (const MessageTime& message : simulation_.messages) {
      if (message.left <= message.departure) continue;
      const svg::Box box{x(message.departure), strip_[static_cast<size_t>(message.from)], x(message.left) - x(message.departure), strip};
      out += svg::rect(box, " fill=\"#b9cbe0\" stroke=\"#ffffff\" stroke-width=\"0.6\"",
                       fmt::format("{:.0f} bytes to rank {} through {}, {} to {}", message.bytes, message.to,
                                   network_.classes[message.link_class].name, time_text(message.departure), time_text(message.left)));
    }
    return out;
  }

  std::string arrows(bool critical) const {
    std::string out;
    for (const MessageTime& message : simulation_.messages) {
      if ((critical_messages_.count({message.sender, message.to}) != 0) != critical) continue;
      const auto to = static_cast<size_t>(message.to);
      const StepTime& receiver = simulation_.steps[message.receiver];
      const double box = lane_[to] + row_of_[receiver.program] * row;
      const bool down = message.to > message.from;
      const double from_y = strip_[static_cast<size_t>(message.from)] + (down ? strip : 0);
      out += svg::line(x(message.departure), from_y, x(message.arrival), down ? box : box + row - 2,
                       critical ? " stroke=\"#111820\" stroke-width=\"1.4\" marker-end=\"url(#critical)\""
                                : " stroke=\"#5c6a7a\" stroke-opacity=\"0.6\" marker-end=\"url(#tip)\"");
    }
    return out;
  }

  std::string boxes() const {
    std::string out;
    for (uint32_t i = 0; i < simulation_.steps.size(); ++i) {
      const StepTime& time = simulation_.steps[i];
      const Step& step = step_of(time);
      const Look& look = look_of(step);
      const Program& program = schedule_.programs[time.program];
      const double y = lane_[static_cast<size_t>(program.rank)] + row_of_[time.program] * row;
      const svg::Box box{std::min(x(time.start), width - right - narrowest), y, std::max(narrowest, x(time.end) - x(time.start)), row - 2};
      std::string title = fmt::format("{}\nrank {}, channel {}, step {}", describe(schedule_, step), program.rank, program.channel,
                                      time.position.cursor.step);
      if (time.position.cursor.slice + time.position.round != 0) {
        title += fmt::format(", slice {} of round {}", time.position.cursor.slice, time.position.round);
      }
      title += fmt::format("\n{} to {}", time_text(time.start), time_text(time.end));
      const bool critical = critical_steps_.count(i) != 0;
      const std::string outline = critical ? fmt::format(" stroke=\"#111820\" stroke-width=\"{:.1f}\"", std::min(1.6, box.width / 3))
                                           : " stroke=\"#ffffff\" stroke-width=\"0.6\"";
      out += svg::rect(box, fmt::format(" rx=\"2.5\" fill=\"{}\"{}", look.colour, outline), title);
      if (box.width >= 6.0 * static_cast<double>(look.operation.size()) + 5) {
        out += svg::text(box.x + box.width / 2, y + row / 2 + 2.5, look.operation,
                         " font-size=\"10\" fill=\"#ffffff\" text-anchor=\"middle\" pointer-events=\"none\"");
      }
    }
    return out;
  }

  const Schedule& schedule_;
  const Network& network_;
  const Simulation& simulation_;
  std::vector<double> row_of_;  // [program]: which row of its lane
  std::vector<double> lane_;    // [rank]: its top
  std::vector<double> strip_;   // [rank]: the top of what its ports send
  double bottom_ = 0;
  std::set<uint32_t> critical_steps_;
  std::set<std::pair<uint32_t, Rank>> critical_messages_;  // the step that sends it, and its receiver
};

}  // namespace

std::string timeline(const Schedule& schedule, const Network& network, const Simulation& simulation, const Headline& headline) {
  return Drawing(schedule, network, simulation).text(headline);
}

}  // namespace gyre::schedule
