// A pool of a fixed number of objects: no allocation after construction; an empty pool is not an error, take() returns null.
// Used by one thread.
#pragma once
#include <cstddef>
#include <vector>

namespace gyre {

template <class T>
class Pool {
 public:
  explicit Pool(size_t capacity) : objects_(capacity) {
    free_.reserve(capacity);
    for (size_t i = capacity; i > 0; --i) free_.push_back(&objects_[i - 1]);
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// An object as it was constructed, or null when all are in use.
  T* take() {
    if (free_.empty()) return nullptr;
    T* object = free_.back();
    free_.pop_back();
    *object = T{};
    return object;
  }
  void give(T* object) { free_.push_back(object); }
  size_t in_use() const { return objects_.size() - free_.size(); }

 private:
  std::vector<T> objects_;
  std::vector<T*> free_;
};

}  // namespace gyre
