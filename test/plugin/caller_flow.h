// What the Progress thread does with one connection: the operations of its script one after the other, up to 8 steps of each sender in
// flight, the oldest tested first. Both ends compute what is sent, so the receiving one knows what must arrive.
#pragma once
#include <deque>

#include "test/plugin/caller_channel.h"

namespace gyre::test {

class Flow {
 public:
  virtual ~Flow() = default;
  /// Does what can be done now; whether anything moved.
  virtual Result<bool> progress() = 0;
  virtual bool finished() const = 0;
  uint64_t messages() const { return messages_; }

 protected:
  explicit Flow(Channel& channel) : channel_(channel), script_(channel.job().traffic, static_cast<uint64_t>(channel.edge().number)) {}
  Error wrong(int sender, int step, const std::string& what) const;
  /// A tag is the sender's rank; those who share a connection have ranks of their own.
  int tag(int sender) const { return channel_.edge().from + sender * channel_.job().ranks; }

  Channel& channel_;
  Script script_;
  int operation_ = 0;
  uint64_t messages_ = 0;  ///< done
};

class SendFlow : public Flow {
 public:
  explicit SendFlow(Channel& channel) : Flow(channel) { begin(); }
  Result<bool> progress() override;
  bool finished() const override { return operation_ == script_.operations(); }

 private:
  struct Sender {
    int steps = 0, filled = 0, posted = 0, done = 0;
    void* requests[steps_in_flight] = {};
  };
  void begin();
  Result<bool> post(int sender);
  Result<bool> test(int sender);

  std::vector<Sender> senders_;
};

class ReceiveFlow : public Flow {
 public:
  explicit ReceiveFlow(Channel& channel);
  Result<bool> progress() override;
  bool finished() const override { return operation_ == script_.operations(); }

 private:
  /// A request under way: a step of the senders that still had one.
  struct Group {
    void* request = nullptr;  ///< null: done, as the plugin says
    int step = 0;
    std::vector<int> senders;  ///< in the order posted
    bool hinted = false;       ///< may be called done before its data is there
  };
  void begin();
  Result<bool> post();
  Result<bool> test();
  Status check_sizes(const Group&, const int* sizes) const;
  Result<bool> take();
  Status check_data(const Group&) const;

  int steps_ = 0, posted_ = 0;  ///< of the operation
  std::deque<Group> groups_;
  void* stale_ = nullptr;  ///< what NCCL leaves in *request: an older one
};

}  // namespace gyre::test
