#include "test/simt/executor.h"

#include <sched.h>

#include <atomic>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/mem.h"
#include "test/simt/fiber.h"

// This file is never instrumented, see meson.build: fibers share a block's state without an order that the thread sanitizer knows of. Where
// fibers run, it uses plain arrays, since a function of a template may be the instrumented copy of another file.
namespace gyre::simt {
namespace {

struct Job {
  const Grid* grid = nullptr;
  unsigned block = 0;
  const std::function<void()>* kernel = nullptr;
};

/// An OS thread that runs a block at a time; its fibers are kept for the next, since the thread sanitizer takes a millisecond to make one.
class Worker {
 public:
  Worker() : thread_([this] { serve(); }) {}
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void start(const Job& job);
  /// What went wrong; empty: nothing.
  std::string wait();

  // From within a fiber.
  bool barrier(bool predicate);
  void yield();
  unsigned thread() const { return current_; }
  const Job& job() const { return job_; }

 private:
  enum class State : uint8_t { ready, waiting, ended };
  struct Thread {
    Worker* worker = nullptr;
    unsigned number = 0;
    State state = State::ended;
    Fiber fiber;
  };
  static constexpr unsigned nobody = ~0U;

  void serve();
  std::string run();
  void make_threads(unsigned count);
  unsigned next_ready();
  std::string deadlock() const;
  static void live(void* thread);

  std::unique_ptr<Thread[]> owned_;
  Thread* threads_ = nullptr;
  unsigned made_ = 0, count_ = 0, current_ = 0, ended_ = 0, arrived_ = 0;
  uint64_t random_ = 0;
  bool phase_ = false;
  bool any_[2] = {};                             // predicate, by phase
  char started_ = 0, joined_ = 0, met_[2] = {};  // addresses for the thread sanitizer; two, as a fast thread may be one barrier ahead

  Job job_;
  std::string failure_;
  enum class Stage { idle, given, done, over } stage_ = Stage::idle;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

thread_local Worker* running = nullptr;

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    stage_ = Stage::over;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::start(const Job& job) {
  {
    const std::lock_guard lock(mutex_);
    job_ = job;
    stage_ = Stage::given;
  }
  changed_.notify_all();
}

std::string Worker::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stage_ == Stage::done; });
  stage_ = Stage::idle;
  return std::move(failure_);
}

void Worker::serve() {
  running = this;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stage_ == Stage::given || stage_ == Stage::over; });
    if (stage_ == Stage::over) break;
    lock.unlock();
    std::string failure = run();
    lock.lock();
    failure_ = std::move(failure);
    stage_ = Stage::done;
    changed_.notify_all();
  }
  owned_.reset();
}

void Worker::make_threads(unsigned count) {
  if (count > made_) {
    owned_ = std::make_unique<Thread[]>(count);
    threads_ = owned_.get();
    made_ = count;
    for (unsigned i = 0; i < count; ++i) {
      threads_[i].worker = this;
      threads_[i].number = i;
      threads_[i].fiber.make(live, &threads_[i]);
    }
  }
  for (unsigned i = 0; i < count; ++i) threads_[i].state = State::ready;
}

// A fiber's whole life: one CUDA thread after the other.
void Worker::live(void* thread) {
  auto* self = static_cast<Thread*>(thread);
  Worker* worker = self->worker;
  while (true) {
    order_acquire(&worker->started_);
    (*worker->job_.kernel)();
    order_release(&worker->joined_);
    self->state = State::ended;
    ++worker->ended_;
    self->fiber.stop();
  }
}

unsigned Worker::next_ready() {
  unsigned offset = 1;
  if (job_.grid->seed != 0) {
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
    offset = static_cast<unsigned>(random_ >> 33) % count_;
  }
  for (unsigned i = 0; i < count_; ++i) {
    const unsigned candidate = (current_ + offset + i) % count_;
    if (threads_[candidate].state == State::ready) return candidate;
  }
  return nobody;
}

std::string Worker::run() {
  count_ = job_.grid->threads;
  make_threads(count_);
  current_ = count_ - 1;
  ended_ = arrived_ = 0;
  any_[0] = any_[1] = false;
  random_ = job_.grid->seed + job_.block;
  order_release(&started_);
  while (ended_ < count_) {
    const unsigned next = next_ready();
    if (next == nobody) {
      std::string text = deadlock();
      owned_.reset();  // they never come back
      made_ = 0;
      return text;
    }
    current_ = next;
    threads_[next].fiber.resume();
  }
  order_acquire(&joined_);
  return {};
}

std::string Worker::deadlock() const {
  unsigned first = 0;
  while (threads_[first].state != State::waiting) ++first;
  return "barrier deadlock in block " + std::to_string(job_.block) + ": " + std::to_string(arrived_) + " of " + std::to_string(count_) +
         " threads wait, the first is thread " + std::to_string(first) + "; the others have ended";
}

void Worker::yield() { threads_[current_].fiber.stop(); }

bool Worker::barrier(bool predicate) {
  const bool phase = phase_;
  any_[phase ? 1 : 0] |= predicate;
  order_release(&met_[phase ? 1 : 0]);
  if (++arrived_ == count_) {
    arrived_ = 0;
    phase_ = !phase;
    any_[phase ? 0 : 1] = false;                                             // of the one before, which all have left
    for (unsigned i = 0; i < count_; ++i) threads_[i].state = State::ready;  // none has ended, since all arrived
  } else {
    threads_[current_].state = State::waiting;
    yield();
  }
  order_acquire(&met_[phase ? 1 : 0]);
  return any_[phase ? 1 : 0];
}

/// Workers that have nothing to do.
class Pool {
 public:
  std::unique_ptr<Worker> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Worker>();
    auto worker = std::move(free_.back());
    free_.pop_back();
    return worker;
  }
  void give(std::unique_ptr<Worker> worker) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(worker));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> free_;
};

Pool& pool = *new Pool;  // never destroyed: kernels may run while the process ends

}  // namespace

// A worker for each block, so that no two blocks are ordered by having shared one.
void launch(const Grid& grid, const std::function<void()>& kernel) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned block = 0; block < grid.blocks; ++block) {
    workers.push_back(pool.take());
    workers.back()->start({&grid, block, &kernel});
  }
  std::string failure;
  for (auto& worker : workers) {
    std::string text = worker->wait();
    if (failure.empty()) failure = std::move(text);
    pool.give(std::move(worker));
  }
  if (!failure.empty()) throw Deadlock(failure);
}

Index thread_index() { return {running->thread()}; }
Index block_index() { return {running->job().block}; }
Index threads_of_block() { return {running->job().grid->threads}; }
Index blocks_of_grid() { return {running->job().grid->blocks}; }

void barrier() { running->barrier(false); }
bool barrier_or(bool predicate) { return running->barrier(predicate); }

void let_others_run() {
  if (running != nullptr) running->yield();
  sched_yield();
}

}  // namespace gyre::simt

namespace {
std::atomic<int> failures{0};
}
int gyre::simt::failed_kernels() { return failures; }
void gyre::kernels::note_failure() { ++failures; }
void gyre::kernels::let_others_run() { gyre::simt::let_others_run(); }
