// Programs that may be able to run: one that can't is looked at again only when what it waits for has changed.
#pragma once
#include <cstdint>
#include <vector>

namespace gyre::schedule {

class Worklist {
 public:
  explicit Worklist(size_t programs) : listed_(programs) {}

  void add(uint32_t program) {
    if (listed_[program]) return;
    listed_[program] = true;
    list_.push_back(program);
  }
  bool empty() const { return list_.empty(); }
  /// The one that was added last: it is likely to go on with what was just sent.
  uint32_t next() {
    const uint32_t program = list_.back();
    list_.pop_back();
    listed_[program] = false;
    return program;
  }

 private:
  std::vector<uint32_t> list_;
  std::vector<char> listed_;
};

}  // namespace gyre::schedule
