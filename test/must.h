// What fails ends a program of the tests, in our words.
#pragma once
#include <stdexcept>
#include <utility>

#include "base/result.h"

namespace gyre::test {

inline void must(const Status& status) {
  if (!status) throw std::runtime_error(status.error().what);
}
template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().what);
  return *std::move(result);
}

}  // namespace gyre::test
