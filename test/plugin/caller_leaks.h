// Descriptors and threads of this process, to compare what there was before a plugin was used with what is left after it.
#pragma once
#include <map>
#include <string>

namespace gyre::test {

struct Owned {
  std::map<std::string, std::string> descriptors;  ///< number -> what it is
  std::map<std::string, std::string> threads;      ///< number -> name
};

Owned owned_now();
/// What there is now and was not then; empty: nothing. Threads that have been joined may take the kernel a moment to go.
std::string what_is_left(const Owned& before);

}  // namespace gyre::test
