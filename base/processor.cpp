#include "base/processor.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/sysfs.h"

namespace gyre {
namespace {

/// "Model: \t\t NVIDIA H100 80GB HBM3"; empty: the driver does not say.
std::string gpu_model(const std::filesystem::path& gpu) {
  std::ifstream information(gpu / "information");
  for (std::string line; std::getline(information, line);) {
    const size_t begin = line.find_first_not_of(" \t", sizeof "Model:" - 1);
    if (line.starts_with("Model:") && begin != std::string::npos) return line.substr(begin);
  }
  return {};
}

}  // namespace

Processors processors_of_host() {
  Processors found{"unknown", ::sysconf(_SC_NPROCESSORS_ONLN)};
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) return {value, found.count};
    // arm64 has no name: who made it, and which of theirs it is.
    if (line.starts_with("CPU implementer")) found.model = value;
    if (line.starts_with("CPU part")) return {found.model + ' ' + value, found.count};
  }
  return found;
}

std::vector<std::string> models_of_host(const std::filesystem::path& root) {
  std::vector<std::string> models;
  for (const std::filesystem::path& gpu : sysfs::entries(root / "proc/driver/nvidia/gpus")) {
    std::string model = gpu_model(gpu);
    if (!model.empty() && std::ranges::find(models, model) == models.end()) models.push_back(std::move(model));
  }
  models.push_back(processors_of_host().model);
  return models;
}

bool is_of_model(std::string_view name, std::string_view model) {
  return name.starts_with(model) && (name.size() == model.size() || name.substr(model.size()).starts_with(" MIG "));
}

}  // namespace gyre
