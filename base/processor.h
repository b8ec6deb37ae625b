// What a host computes with: what measured figures hold for.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
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
/// Whether figures that go by this name are such a model's. CUDA names an instance of a GPU (MIG) by the model and the instance's kind,
/// which the driver does not say of the GPU: "NVIDIA H100 80GB HBM3 MIG 1g.10gb".
bool is_of_model(std::string_view name, std::string_view model);

}  // namespace gyre
