// A pool of a fixed number of objects: no allocation after construction; an empty pool is not an error, take() returns null.
// Used by one thread.
#pragma once
#include <cassert>
#include <cstddef>
#include <vector>

namespace gyre {

template <class T>
class Pool {
 public:
  explicit Pool(size_t capacity) : objects_(capacity), free_(capacity), left_(capacity) {
    for (size_t i = 0; i < capacity; ++i) free_[i] = &objects_[capacity - 1 - i];
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// An object as it was constructed, or null when all are in use.
  T* take() {
    T* object = take_used();
    if (object) *object = T{};
    return object;
  }
  /// The same, as its last user has left it.
  T* take_used() { return left_ == 0 ? nullptr : free_[--left_]; }
  void give(T* object) {
    assert(left_ < free_.size());
    free_[left_++] = object;
  }
  size_t in_use() const { return free_.size() - left_; }

 private:
  std::vector<T> objects_;
  std::vector<T*> free_;  // the first of these
  size_t left_;
};

}  // namespace gyre
