#include "plugin/nccl/wrap_real.h"

#include <optional>

namespace gyre::plugin::nccl::wrap {
namespace {

struct Setting {
  Table real;
  Config config;
  Offer offer;
};

// Never destroyed: threads may call while the process ends.
std::optional<Setting>& setting() {
  static auto& only = *new std::optional<Setting>;
  return only;
}

}  // namespace

void set_up(const Table& real, const Config& config) { setting() = Setting{real, config, Offer::of(config)}; }
const Table& real() { return setting()->real; }
const Config& config() { return setting()->config; }
const Offer& offer() { return setting()->offer; }

}  // namespace gyre::plugin::nccl::wrap
