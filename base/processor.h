// What a host computes with: what measured figures hold for.
#pragma once
#include <string>

namespace gyre {

struct Processors {
  std::string model;  ///< as the kernel names it; "unknown" where it does not
  long count = 0;     ///< that run, whichever of them this process may use

  bool operator==(const Processors&) const = default;
};
Processors processors_of_host();

}  // namespace gyre
