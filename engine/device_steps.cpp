#include "engine/device_steps.h"

#include <algorithm>

#include "engine/device_ordered.h"
#include "engine/device_reduction.h"
#include "kernels/canonical.h"
#include "kernels/ordered.h"

namespace gyre::engine {
namespace {

using schedule::Buffer;
using schedule::Chunks;
using schedule::Step;
using schedule::Turn;

class Writer {
 public:
  Writer(const Plan& plan, Rank rank, const Buffers& buffers, std::byte* scratch, const Staging& staging, size_t connections)
      : plan_(plan),
        schedule_(plan.schedule()),
        rank_(rank),
        staging_(staging),
        reduction_(plan.call(), schedule_.ranks, buffers.scalar, staging, out_.kernels),
        ordered_(plan, buffers.scalar, staging, out_.kernels) {
    buffers_[0] = static_cast<std::byte*>(
        const_cast<void*>(buffers.input));  // NOLINT(cppcoreguidelines-pro-type-const-cast): verified: steps write output only
    buffers_[1] = static_cast<std::byte*>(buffers.output);
    buffers_[2] = scratch;
    out_.type = arithmetic_of(plan.call());
    out_.converts = plan.ordered() && kernels::partial_size(out_.type) != size_of(out_.type);
    out_.arriving.resize(connections);
    out_.leaving.resize(connections);
    latest_.resize(size_t{schedule_.channels} * schedule_.strands);
  }

  void write(const Turn& turn, uint32_t round) {
    turn_ = turn, round_ = round;
    const schedule::Program& program = schedule_.program(rank_, turn.channel, turn.strand);
    const Step& step = program.steps[turn.cursor.step];
    const schedule::Fact& fact = plan_.proof().facts[static_cast<size_t>(&program - schedule_.programs.data())][turn.cursor.step];
    const auto first = static_cast<uint32_t>(out_.kernels.size());
    note_messages(step, fact);
    reduction_.begin();
    ordered_.begin();
    write_kernels(step, fact);
    if (out_.kernels.size() == first) out_.kernels.emplace_back();
    const auto number = static_cast<uint32_t>(out_.steps.size() - 1);
    Latest& latest = latest_[size_t{turn.channel} * schedule_.strands + turn.strand];
    latest.at(round, turn.cursor.step);
    for (auto k = first; k < out_.kernels.size(); ++k) {
      DeviceKernel& kernel = out_.kernels[k];
      kernel.step = number;
      // A step's own kernels, and sums on their way, are one after another; else slices of one step touch nothing in common, nor do
      // strands, where no message has put them in order.
      kernel.after = k > first || reduction_.keeps_sums() || ordered_.keeps_sums() ? k : latest.before;
    }
    latest.end = out_.steps.back().kernels_end = static_cast<uint32_t>(out_.kernels.size());
  }

  DeviceSteps done() && {
    out_.sums = std::max(reduction_.sums(), ordered_.sums());
    return std::move(out_);
  }

 private:
  /// Of a program: up to where kernels of the step before the one that is written go, and of this one.
  struct Latest {
    uint32_t round = 0, step = 0, before = 0, end = 0;
    void at(uint32_t r, uint32_t s) {
      if (r == round && s == step) return;
      round = r, step = s, before = end;
    }
  };

  Piece piece(uint32_t chunk) const { return plan_.piece(chunk, round_ * plan_.slices() + turn_.cursor.slice); }
  std::byte* address(const Chunks& chunks, uint32_t i) const {
    return buffers_[static_cast<size_t>(chunks.buffer)] + piece(chunks[i]).first * plan_.width(chunks.buffer);
  }

  void note_messages(const Step& step, const schedule::Fact& fact) {
    size_t elements = 0;
    for (uint32_t i = 0; i < step.flow().count; ++i) elements += piece(step.flow()[i]).count;
    DeviceStep& noted = out_.steps.emplace_back();
    noted.turn = turn_, noted.round = round_;
    noted.messages = static_cast<uint32_t>(out_.messages.size());
    noted.arrivals = step.from.count, noted.sends = step.to.count;
    for (const Rank peer : schedule_.peers(step.from)) note(out_.arriving, peer, elements * plan_.width(fact.arrived));
    for (const Rank peer : schedule_.peers(step.to)) note(out_.leaving, peer, elements * plan_.width(fact.value));
  }
  void note(std::vector<std::vector<size_t>>& connections, Rank peer, size_t bytes) {
    const uint32_t connection = staging_.connection(turn_.channel, peer);
    out_.messages.push_back({connection, static_cast<uint32_t>(connections[connection].size())});
    connections[connection].push_back(bytes);
  }

  void write_kernels(const Step& step, const schedule::Fact& fact) {
    const DeviceStep& noted = out_.steps.back();
    size_t before = 0;  // in the messages, in elements
    for (uint32_t i = 0; i < step.flow().count; ++i) {
      const size_t count = piece(step.flow()[i]).count;
      sources_.clear();
      sinks_.clear();
      const auto arrivals = out_.arrivals(noted);
      for (uint32_t a = 0; a < arrivals.size(); ++a) {
        if (step.src.present() && a == step.place) take(step.src, i, fact);
        const std::byte* const message = staging_.incoming(arrivals[a].connection, arrivals[a].number);
        sources_.push_back({message + before * plan_.width(fact.arrived), false, fact.arrived});
      }
      if (step.src.present() && step.place >= arrivals.size()) take(step.src, i, fact);
      if (step.dst.present()) sinks_.push_back(address(step.dst, i));
      for (const Passing& send : out_.sends(noted))
        sinks_.push_back(staging_.outgoing(send.connection, send.number) + before * plan_.width(fact.value));
      if (plan_.ordered())
        ordered_.write(sources_, sinks_, count, fact.value, step.association);
      else
        reduction_.write(sources_, sinks_, count, fact);
      before += count;
    }
  }
  void take(const Chunks& chunks, uint32_t i, const schedule::Fact& fact) {
    sources_.push_back({address(chunks, i), chunks.buffer == Buffer::input, fact.local});
  }

  const Plan& plan_;
  const schedule::Schedule& schedule_;
  Rank rank_;
  const Staging& staging_;
  std::byte* buffers_[3] = {};
  DeviceSteps out_;
  DeviceReduction reduction_;
  DeviceOrderedReduction ordered_;  // in place of that
  std::vector<Latest> latest_;      // [channel, strand]

  // of the step that is written
  Turn turn_;
  uint32_t round_ = 0;
  std::vector<DeviceSource> sources_;
  std::vector<std::byte*> sinks_;
};

}  // namespace

DataType arithmetic_of(const Call& call) {
  const bool eight_bits = call.type == DataType::float8e4m3 || call.type == DataType::float8e5m2;
  return eight_bits && !reduces(call.collective) ? DataType::uint8 : call.type;
}

size_t DeviceSteps::traffic() const {
  size_t bytes = 0;
  for (const DeviceKernel& kernel : kernels) {
    const size_t element = size_of(kernel.type);
    const auto is_wide = [&](uint32_t flag) { return kernel.converts && (kernel.args.scalar >> 32 & flag) != 0; };
    const auto add = [&](const void* operand, bool wide) {
      if (operand != nullptr) bytes += kernel.args.count * (wide ? kernels::partial_size(kernel.type) : element);
    };
    add(kernel.args.sources[0], is_wide(kernels::first_is_partial));
    add(kernel.args.sources[1], is_wide(kernels::second_is_partial));
    add(kernel.args.sources[2], false);
    for (const void* destination : kernel.args.destinations) add(destination, is_wide(kernels::to_partial));
  }
  return bytes;
}

DeviceSteps device_steps(const Plan& plan, Rank rank, std::span<const Turn> turns, const Buffers& buffers, std::byte* scratch,
                         const Staging& staging) {
  Writer writer(plan, rank, buffers, scratch, staging, staging.in.size());
  for (uint32_t round = 0; round < plan.rounds(); ++round) {
    for (const Turn& turn : turns) writer.write(turn, round);
  }
  return std::move(writer).done();
}

}  // namespace gyre::engine
