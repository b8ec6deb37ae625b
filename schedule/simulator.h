// Plays one trial, event by event. Private to simulate.cpp.
#pragma once
#include <optional>
#include <string>

#include "schedule/jitter.h"
#include "schedule/timed_job.h"

namespace gyre::schedule {

class Simulator {
 public:
  Simulator(const Schedule&, const Wiring&, const Network&, const Trial&);

  /// The ranks of a missing link that the schedule uses.
  std::optional<std::pair<Rank, Rank>> missing_link() const { return missing_; }
  void run();
  /// Empty: all programs have ended.
  std::string deadlock();
  Simulation take_result();

 private:
  friend class TimedMachine;

  void connect();
  void handle(const Event&);

  void wake(uint32_t program);
  void wake_channel(Rank, uint32_t channel);
  void start(uint32_t program, const Step&);
  void end_step(uint32_t step);
  double busy(const Step&, const TimedProgram&, Rank) const;

  void send(uint32_t step, uint32_t connection);
  void depart(uint32_t message);
  void transfer(uint32_t message);
  void leave(uint32_t message);
  void arrive(uint32_t message);
  void hold(uint32_t message, bool begin);
  uint32_t& readers(Rank, const Chunks&, uint32_t i, uint32_t slice);

  bool held() const { return trial_.conditions.mode != Mode::buffered; }  // messages are read from the sender's memory
  bool posted() const { return trial_.conditions.mode == Mode::posted; }  // and leave when their receives are announced
  double bytes(const Step& step) const { return step.flow().count * slice_bytes_; }
  uint64_t identity_of(Delayed, uint32_t message) const;
  double delayed(double seconds, uint64_t what) const { return jittered(seconds, trial_.jitter, trial_.seed, what); }

  const Schedule& schedule_;
  const Wiring& wiring_;
  const Network& network_;
  const Trial& trial_;
  double slice_bytes_;  // of a chunk, in a round
  Cells cells_;
  std::vector<TimedProgram> programs_;
  std::vector<TimedConnection> connections_;  // [link]
  std::vector<TimedMessage> messages_;
  std::vector<uint32_t> readers_;         // [rank, cell, slice]: messages under way that read this memory
  std::vector<double> factor_;            // [rank]: of its processor's times
  std::vector<double> processor_free_;    // [processor]: when
  std::vector<uint32_t> processor_step_;  // [processor]: its latest step
  Ports ports_;
  Events events_;
  double now_ = 0;
  Cause cause_;  // of what happens now
  std::optional<std::pair<Rank, Rank>> missing_;
  Simulation result_;
};

}  // namespace gyre::schedule
