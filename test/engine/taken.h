// What gyre has taken of memory in this process, counted from outside: mapped memory that it made, by the kernel's list, and blocks that
// were asked for with an alignment, which slots and scratch are. taken.cpp replaces the operators that count those.
#pragma once
#include <cstddef>

namespace gyre::test {

/// Of the memory that processes share: each counted once, however many have it mapped.
size_t shared_bytes();
/// Of the blocks there are now.
size_t aligned_bytes();
/// And the most there were since the last call of restart_peak().
size_t aligned_peak();
void restart_peak();

}  // namespace gyre::test
