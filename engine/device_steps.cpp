#include "engine/device_steps.h"

#include "engine/device_reduction.h"

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
        reduction_(plan.call(), schedule_.ranks, buffers.scalar, staging, out_.kernels) {
    buffers_[0] = static_cast<std::byte*>(
        const_cast<void*>(buffers.input));  // NOLINT(cppcoreguidelines-pro-type-const-cast): verified: steps write output only
    buffers_[1] = static_cast<std::byte*>(buffers.output);
    buffers_[2] = scratch;
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
    note_messages(step);
    reduction_.begin();
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
      kernel.after = k > first || reduction_.keeps_sums() ? k : latest.before;
    }
    latest.end = out_.steps.back().kernels_end = static_cast<uint32_t>(out_.kernels.size());
  }

  DeviceSteps done() && { return std::move(out_); }

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

  void note_messages(const Step& step) {
    size_t elements = 0;
    for (uint32_t i = 0; i < step.flow().count; ++i) elements += piece(step.flow()[i]).count;
    const size_t bytes = elements * size_of(plan_.call().type);
    DeviceStep& noted = out_.steps.emplace_back();
    noted.turn = turn_, noted.round = round_;
    noted.messages = static_cast<uint32_t>(out_.messages.size());
    noted.arrivals = step.from.count, noted.sends = step.to.count;
    for (const Rank peer : schedule_.peers(step.from)) note(out_.arriving, peer, bytes);
    for (const Rank peer : schedule_.peers(step.to)) note(out_.leaving, peer, bytes);
  }
  void note(std::vector<std::vector<size_t>>& connections, Rank peer, size_t bytes) {
    const uint32_t connection = staging_.connection(turn_.channel, peer);
    out_.messages.push_back({connection, static_cast<uint32_t>(connections[connection].size())});
    connections[connection].push_back(bytes);
  }

  void write_kernels(const Step& step, const schedule::Fact& fact) {
    const DeviceStep& noted = out_.steps.back();
    size_t offset = 0;  // in the messages, in bytes
    for (uint32_t i = 0; i < step.flow().count; ++i) {
      const size_t count = piece(step.flow()[i]).count;
      sources_.clear();
      sinks_.clear();
      const auto arrivals = out_.arrivals(noted);
      for (uint32_t a = 0; a < arrivals.size(); ++a) {
        if (step.src.present() && a == step.place) take(step.src, i);
        sources_.push_back({staging_.incoming(arrivals[a].connection, arrivals[a].number) + offset, false});
      }
      if (step.src.present() && step.place >= arrivals.size()) take(step.src, i);
      if (step.dst.present()) sinks_.push_back(address(step.dst, i));
      for (const Passing& send : out_.sends(noted)) sinks_.push_back(staging_.outgoing(send.connection, send.number) + offset);
      reduction_.write(sources_, sinks_, count, fact);
      offset += count * size_of(plan_.call().type);
    }
  }
  void take(const Chunks& chunks, uint32_t i) { sources_.push_back({address(chunks, i), chunks.buffer == Buffer::input}); }

  const Plan& plan_;
  const schedule::Schedule& schedule_;
  Rank rank_;
  const Staging& staging_;
  std::byte* buffers_[3] = {};
  DeviceSteps out_;
  DeviceReduction reduction_;
  std::vector<Latest> latest_;  // [channel, strand]

  // of the step that is written
  Turn turn_;
  uint32_t round_ = 0;
  std::vector<DeviceReduction::Source> sources_;
  std::vector<std::byte*> sinks_;
};

}  // namespace

size_t DeviceSteps::traffic(size_t element_bytes) const {
  size_t elements = 0;
  for (const DeviceKernel& kernel : kernels) {
    const auto there = [](const void* operand) { return operand != nullptr ? size_t{1} : 0; };
    for (const void* source : kernel.args.sources) elements += there(source) * kernel.args.count;
    for (const void* destination : kernel.args.destinations) elements += there(destination) * kernel.args.count;
  }
  return elements * element_bytes;
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
