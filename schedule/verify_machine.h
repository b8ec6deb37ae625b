// The proof's Machine (run.h) with expressions in place of data, and the whole job that it works on. Private to verify.cpp.
#pragma once
#include <fmt/format.h>

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "schedule/announce.h"
#include "schedule/expression.h"
#include "schedule/verify.h"

namespace gyre::schedule {

// A message under way: the values, and in posted mode the sender's memory that must not change before the message is received.
struct Message {
  std::vector<Expressions::Id> values;
  std::vector<size_t> held;
};
struct Connection {
  std::deque<Message> messages;
  size_t announced = 0;  // of posted mode: receives announced and not yet run
};

// The whole job: every rank's memory and every connection.
struct Job {
  Job(const Schedule& s, const Conditions& c)
      : schedule(s), conditions(c), expressions(s.ranks), per_rank(2 * size_t{s.chunks} * c.slices) {
    memory.resize(per_rank * static_cast<size_t>(s.ranks));
    readers.resize(memory.size());
    for (Rank r = 0; r < s.ranks; ++r) {
      for (uint32_t chunk = 0; chunk < s.chunks; ++chunk) {
        for (uint32_t slice = 0; slice < c.slices; ++slice) {
          memory[at(r, Buffer::input, chunk, slice)] = expressions.leaf(r, chunk * c.slices + slice);
        }
      }
    }
  }
  size_t at(Rank rank, Buffer buffer, uint32_t chunk, uint32_t slice) const {
    const size_t first = buffer == Buffer::output && !conditions.in_place ? schedule.chunks : 0;
    return static_cast<size_t>(rank) * per_rank + (first + chunk) * conditions.slices + slice;
  }
  Connection& connection(Rank from, Rank to, uint32_t channel) {
    const auto n = static_cast<uint64_t>(schedule.ranks);
    return connections[(channel * n + static_cast<uint64_t>(from)) * n + static_cast<uint64_t>(to)];
  }
  // A message whose receive is announced moves by itself, and then nothing reads the sender's memory any more.
  void complete(Connection& connection) {
    for (size_t i = 0; i < std::min(connection.announced, connection.messages.size()); ++i) {
      for (const size_t place : connection.messages[i].held) --readers[place];
      connection.messages[i].held.clear();
    }
  }

  const Schedule& schedule;
  const Conditions& conditions;
  Expressions expressions;
  size_t per_rank;
  std::vector<Expressions::Id> memory;
  std::vector<uint32_t> readers;  // messages under way that read this memory
  std::unordered_map<uint64_t, Connection> connections;
  std::string fault;  // the first rule broken; empty: none
};

// One rank on one channel. See run.h for what the functions mean.
class VerifyMachine {
 public:
  VerifyMachine(Job& job, const Program& program) : job_(job), program_(program), rank_(program.rank), channel_(program.channel) {
    announcer_.bind(program, job.conditions.slices, 1, job.conditions.in_place);
  }

  Cursor cursor;
  Expressions::Id result = Expressions::none;  // of the last step's first value

  bool done() const { return cursor.step == program_.steps.size(); }
  bool announce() { return posted() && announcer_.run(*this, job_.schedule, done() ? Position{1, {}} : Position{0, cursor}); }

  // For the announcer.
  bool posted(Rank /*peer*/ = 0) const { return job_.conditions.mode == Mode::posted; }
  bool held(const Chunks& chunks, const Position& position) const {
    for (uint32_t i = 0; i < chunks.count; ++i) {
      if (job_.readers[job_.at(rank_, chunks.buffer, chunks[i], position.cursor.slice)] != 0) return true;
    }
    return false;
  }
  bool expect(Rank peer, const Step&, const Position&) {
    Connection& connection = job_.connection(peer, rank_, channel_);
    if (connection.announced == job_.conditions.credits) return false;
    ++connection.announced;
    job_.complete(connection);
    return true;
  }

  // For advance().
  bool arrived(Rank peer) {
    const Connection& connection = job_.connection(peer, rank_, channel_);
    return !connection.messages.empty() && (!posted() || connection.announced != 0);
  }
  bool credit(Rank peer) { return job_.connection(rank_, peer, channel_).messages.size() < job_.conditions.credits; }
  bool overwritable(const Chunks& chunks) const { return !held(chunks, {0, cursor}); }
  void take(Rank peer) {
    Connection& connection = job_.connection(peer, rank_, channel_);
    add(std::move(connection.messages.front().values));
    connection.messages.pop_front();
    if (posted()) --connection.announced;
  }
  void take(const Chunks& chunks) {
    std::vector<Expressions::Id> values;
    for (uint32_t i = 0; i < chunks.count; ++i) {
      values.push_back(job_.memory[at(chunks, i)]);
      if (values.back() == Expressions::none) fault("reads chunk {} before it is written", chunks[i]);
    }
    add(std::move(values));
  }
  void put(const Chunks& chunks) {
    if (chunks.buffer == Buffer::input) return fault("writes the input");
    if (chunks.count != value_.size()) return fault("writes {} chunks from {}", chunks.count, value_.size());
    for (uint32_t i = 0; i < chunks.count; ++i) {
      if (chunk_of(value_[i]) != chunks[i]) fault("writes chunk {} to {}", chunk_of(value_[i]), chunks[i]);
      job_.memory[at(chunks, i)] = value_[i];
    }
  }
  void put(Rank peer) { sinks_.push_back(peer); }

  void finish(const Step& step) {
    if (value_.empty()) fault("has no source");
    if (!step.flow().present()) fault("names no chunk: the size of its message is unknown");
    result = value_.empty() ? Expressions::none : value_.front();
    Message message{value_, {}};
    // A posted send reads the memory where its value lies; a value that lies nowhere goes out from a slot.
    const Chunks& source = step.dst.present() ? step.dst : step.src;
    if (posted() && (step.dst.present() || step.sources() == 1) && source.present()) {
      for (uint32_t i = 0; i < source.count; ++i) message.held.push_back(at(source, i));
    }
    for (const Rank peer : sinks_) {
      for (const size_t place : message.held) ++job_.readers[place];
      Connection& connection = job_.connection(rank_, peer, channel_);
      connection.messages.push_back(message);
      job_.complete(connection);
    }
    value_.clear();
    sinks_.clear();
  }

 private:
  size_t at(const Chunks& chunks, uint32_t i) const { return job_.at(rank_, chunks.buffer, chunks[i], cursor.slice); }
  uint32_t chunk_of(Expressions::Id id) const { return job_.expressions.chunk(id) / job_.conditions.slices; }
  void add(std::vector<Expressions::Id> values) {
    if (value_.empty()) {
      value_ = std::move(values);
      return;
    }
    if (values.size() != value_.size()) return fault("reduces {} chunks with {}", value_.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const Expressions::Id reduced = job_.expressions.reduce(value_[i], values[i], rank_);
      if (reduced == Expressions::none) {
        fault("reduces {} with {}: not the same chunk, or a part twice", job_.expressions.text(value_[i]),
              job_.expressions.text(values[i]));
      }
      value_[i] = reduced;
    }
  }
  template <class... Args>
  void fault(fmt::format_string<Args...> format, Args&&... args) {
    if (!job_.fault.empty()) return;
    job_.fault =
        fmt::format("rank {} channel {} step {} {}", rank_, channel_, cursor.step, fmt::format(format, std::forward<Args>(args)...));
  }

  Job& job_;
  const Program& program_;
  Rank rank_;
  uint32_t channel_;
  Announcer announcer_;
  std::vector<Expressions::Id> value_;
  std::vector<Rank> sinks_;
};

}  // namespace gyre::schedule
