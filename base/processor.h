// What a host computes with: what measured figures hold for.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace gyre {

struct Processors {
  std::string model;  ///< as the kernel names it; "unknown" where it does not
  long count = 0;     ///< that run, whichever of them this process may use

  bool operator==(const Processors&) const = default;
};
Processors processors_of_host();
/// By whose names measured figures may go: the GPUs', as NVIDIA's driver gives them, each model once, then the processors'.
std::vector<std::string> models_of_host(const std::filesystem::path& root = "/");

}  // namespace gyre
