#include "schedule/fuse.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace gyre::schedule {
namespace {

bool is_send(const Step& step) { return step.from.count == 0 && step.src.present() && !step.dst.present() && step.to.count != 0; }
bool is_copy(const Step& step) { return step.from.count == 0 && step.src.present() && step.dst.present() && step.to.count == 0; }

class Fuser {
 public:
  explicit Fuser(Schedule schedule)
      : schedule_(std::move(schedule)), cells_(schedule_.layout(), schedule_.scratch, schedule_.layout().has_in_place()) {}

  Schedule run(bool staged) {
    for (Program& program : schedule_.programs) {
      join_sends(program.steps);
      join_copies(program);
      for (const uint32_t i : dead(program, staged)) program.steps[i].dst = {};
    }
    pack_scratch();
    drop_scratch();
    return std::move(schedule_);
  }

 private:
  // As the same memory, should the call be in place.
  Chunks in_memory(Rank rank, Chunks chunks) const {
    chunks.first = static_cast<uint32_t>(cells_.of(rank, chunks.buffer, chunks.first));
    return chunks;
  }
  bool may_share(Rank rank, const Chunks& a, const Chunks& b) const {
    return (a.buffer == b.buffer && a.shares(b)) || in_memory(rank, a).shares(in_memory(rank, b));
  }

  // A receive followed at once by the send of what it wrote.
  static void join_sends(std::vector<Step>& steps) {
    std::vector<Step> joined;
    for (const Step& step : steps) {
      const bool joins = !joined.empty() && is_send(step) && joined.back().from.count != 0 && joined.back().to.count == 0 &&
                         joined.back().dst.present() && joined.back().dst == step.src;
      if (joins) {
        joined.back().to = step.to;
      } else {
        joined.push_back(step);
      }
    }
    steps = std::move(joined);
  }

  // A copy of what an earlier step has sent, when nothing between them touches where it is copied to, or changes what is copied.
  void join_copies(const Program& at) {
    auto& steps = schedule_.programs[static_cast<size_t>(&at - schedule_.programs.data())].steps;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (!is_copy(steps[i])) continue;
      const Step copy = steps[i];
      for (size_t j = i; j-- > 0;) {
        if (is_send(steps[j]) && steps[j].src == copy.src && alone(at, copy.dst)) {
          steps[j].dst = copy.dst;
          steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i--));
          break;
        }
        if (may_share(at.rank, steps[j].dst, copy.src) || may_share(at.rank, steps[j].dst, copy.dst) ||
            may_share(at.rank, steps[j].src, copy.dst))
          break;
      }
    }
  }

  template <class F>
  void each_cell(Rank rank, const Chunks& chunks, F f) const {
    if (!chunks.present()) return;
    const size_t first = cells_.of(rank, chunks.buffer, chunks.first);
    for (uint32_t i = 0; i < chunks.count; ++i) f(first + size_t{i} * chunks.stride);
  }

  // Steps that send on what they write, to chunks that are written again before anything reads them, or are scratch that nothing reads.
  std::vector<uint32_t> dead(const Program& program, bool staged) const {
    constexpr uint32_t never = UINT32_MAX;
    const auto& steps = program.steps;
    std::vector<uint32_t> read(cells_.count(), never);     // [cell]: the next step that does
    std::vector<uint32_t> written(cells_.count(), never);  // [cell]: the next step that writes chunks of which this is the first
    std::vector<uint32_t> after(steps.size(), never);      // [step]: the next one like that
    std::vector<uint32_t> found;
    for (auto i = static_cast<uint32_t>(steps.size()); i-- > 0;) {
      const Step& step = steps[i];
      uint32_t* first = step.dst.present() ? &written[cells_.of(program.rank, step.dst.buffer, step.dst.first)] : nullptr;
      const bool partial = step.reduces() || (!staged && step.from.count == 0 && step.dst.buffer == Buffer::scratch);
      if (partial && step.dst.present() && step.to.count != 0) {
        uint32_t again = *first;
        while (again != never && steps[again].dst != step.dst) again = after[again];
        bool needed = again == never && step.dst.buffer != Buffer::scratch;
        each_cell(program.rank, step.dst, [&](size_t cell) { needed = needed || (read[cell] != never && read[cell] <= again); });
        if (!needed && alone(program, step.dst)) found.push_back(i);
      }
      each_cell(program.rank, step.src, [&](size_t cell) { read[cell] = i; });
      if (first != nullptr) after[i] = std::exchange(*first, i);
    }
    return found;
  }

  // No other strand of the rank touches these chunks.
  bool alone(const Program& program, const Chunks& chunks) const {
    for (uint32_t s = 0; s < schedule_.strands; ++s) {
      if (s == program.strand) continue;
      for (const Step& step : schedule_.program(program.rank, program.channel, s).steps) {
        if (may_share(program.rank, step.src, chunks) || may_share(program.rank, step.dst, chunks)) return false;
      }
    }
    return true;
  }

  template <class F>
  void each_in_scratch(F f) {
    for (Program& program : schedule_.programs) {
      for (Step& step : program.steps) {
        for (Chunks* chunks : {&step.src, &step.dst}) {
          if (chunks->present() && chunks->buffer == Buffer::scratch) f(program.rank, *chunks);
        }
      }
    }
  }

  // The blocks that a rank keeps are often equally far apart, every rank's beside the others': they move together, so that scratch is no
  // larger than what is kept.
  void pack_scratch() {
    uint32_t stride = 0;
    each_in_scratch([&](Rank, const Chunks& chunks) { stride = chunks.count > 1 ? std::gcd(stride, chunks.stride) : stride; });
    const uint32_t apart = stride % schedule_.chunks == 0 ? stride / schedule_.chunks : 0;
    if (apart < 2) return;
    const auto packed = [&](uint32_t chunk) { return chunk / schedule_.chunks / apart * schedule_.chunks + chunk % schedule_.chunks; };
    std::vector<std::vector<uint32_t>> from(static_cast<size_t>(schedule_.ranks), std::vector<uint32_t>(schedule_.scratch, UINT32_MAX));
    bool clash = false;
    each_in_scratch([&](Rank rank, const Chunks& chunks) {
      for (uint32_t i = 0; i < chunks.count; ++i) {
        uint32_t& before = from[static_cast<size_t>(rank)][packed(chunks[i])];
        clash = clash || (before != UINT32_MAX && before != chunks[i]);
        before = chunks[i];
      }
    });
    if (clash) return;
    each_in_scratch([&](Rank, Chunks& chunks) {
      chunks.first = packed(chunks.first);
      if (chunks.count > 1) chunks.stride /= apart;
    });
  }

  void drop_scratch() {
    schedule_.scratch = 0;
    each_in_scratch([&](Rank, const Chunks& chunks) { schedule_.scratch = std::max(schedule_.scratch, chunks[chunks.count - 1] + 1); });
  }

  Schedule schedule_;
  Cells cells_;
};

}  // namespace

Schedule fuse(Schedule schedule, bool staged) { return Fuser(std::move(schedule)).run(staged); }

}  // namespace gyre::schedule
