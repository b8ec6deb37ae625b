// A connection that the Service thread is making, from the receiver's or the sender's side, in the steps in which NCCL makes it. Each
// call makes at most one call that may have to be made again; nothing waits.
#pragma once
#include "test/plugin/caller_channel.h"

namespace gyre::test {

/// Where a communicator's calls go.
struct Caller {
  perf::NetPlugin& plugin;
  void* context;  ///< null before table 11
  int number;     ///< of the communicator in this process
  int devices;
};

using Made = Result<std::unique_ptr<Channel>>;

class Setup {
 public:
  virtual ~Setup() = default;
  /// The connection, once it is made.
  virtual Made step() = 0;

 protected:
  Setup(const Caller& caller, const Job& job, const Edge& edge) : caller_(caller), job_(job), edge_(edge) {}
  int device() const { return edge_.number % caller_.devices; }
  /// getProperties and setNetAttr, which come before a connection.
  Status announce() const;
  /// Name of the handle in the mailbox.
  std::string name() const { return fmt::format("{}.connection{}", job_.label(caller_.number), edge_.number); }
  Made made(void* comm, bool sends) const;

  Caller caller_;
  const Job& job_;
  Edge edge_;
};

class Accepting : public Setup {
 public:
  Accepting(const Caller& caller, const Job& job, const Edge& edge) : Setup(caller, job, edge) {}
  Made step() override;

 private:
  Status listen();
  void* listener_ = nullptr;  // not closed where a communicator is aborted before: NCCL does not either
};

class Connecting : public Setup {
 public:
  Connecting(const Caller& caller, const Job& job, const Edge& edge) : Setup(caller, job, edge) {}
  Made step() override;

 private:
  bool has_handle_ = false;
  perf::NetHandle handle_;  ///< the same memory in all calls
};

}  // namespace gyre::test
