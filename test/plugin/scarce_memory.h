// A program that has this has its own operator new, which a test makes fail.
#pragma once
#include <atomic>
#include <cstddef>

namespace gyre::test {

extern std::atomic<bool> none_left;
extern std::atomic<size_t> refused_bytes;  ///< of these there are none; 0: there are

}  // namespace gyre::test
