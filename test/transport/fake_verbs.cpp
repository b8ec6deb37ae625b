#include "test/transport/fake_verbs.h"

#include "test/transport/fake_verbs_state.h"

namespace gyre::test {

FakeVerbs::FakeVerbs() : state_(std::make_unique<State>()) {
  std::string folder = std::filesystem::temp_directory_path() / "gyre-fake-verbs-XXXXXX";
  sysfs_ = ::mkdtemp(folder.data());
  state_->api = fake_calls(state_.get());
  transport::verbs::use(&state_->api);
}

FakeVerbs::~FakeVerbs() {
  transport::verbs::use(nullptr);
  (void)fake_calls(nullptr);
  std::filesystem::remove_all(sysfs_);
}

void FakeVerbs::add_device(const std::string& name, FakeTraits traits) {
  std::lock_guard lock(state_->mutex);
  auto device = std::make_unique<Device>();
  name.copy(device->name, sizeof device->name - 1);
  device->traits = traits;
  device->ports.resize(static_cast<size_t>(traits.ports));
  for (int port = 1; port <= traits.ports; ++port) {
    const auto shown = std::filesystem::path(sysfs_) / "class/infiniband" / name / "ports" / std::to_string(port);
    std::filesystem::create_directories(shown / "gids");
    std::filesystem::create_directories(shown / "gid_attrs/types");
    const bool infiniband = traits.link_layer == IBV_LINK_LAYER_INFINIBAND;
    std::ofstream(shown / "gids/0") << (infiniband ? "fe80:0000:0000:0000:0002:c903:0000:" : "0000:0000:0000:0000:0000:ffff:0a07:")
                                    << std::hex << 0x100 + state_->devices.size() << '\n';
    std::ofstream(shown / "gid_attrs/types/0") << (infiniband ? "IB/RoCE v1\n" : "RoCE v2\n");
  }
  state_->devices.push_back(std::move(device));
}

void FakeVerbs::cut(const std::string& device, uint8_t port) {
  cut_path(device, port);
  std::lock_guard lock(state_->mutex);
  state_->port(device, port).up = false;
  state_->tell(state_->device(device), IBV_EVENT_PORT_ERR, port);
}

void FakeVerbs::cut_path(const std::string& device, uint8_t port) {
  std::lock_guard lock(state_->mutex);
  state_->port(device, port).passes = false;
}

void FakeVerbs::restore(const std::string& device, uint8_t port) {
  std::lock_guard lock(state_->mutex);
  auto& restored = state_->port(device, port);
  const bool was_down = !restored.up;
  restored = {};
  if (was_down) state_->tell(state_->device(device), IBV_EVENT_PORT_ACTIVE, port);
}

void FakeVerbs::kill(const std::string& name) {
  std::lock_guard lock(state_->mutex);
  Device& device = state_->device(name);
  for (auto& port : device.ports) port.up = port.passes = false;
  for (const auto& [number, pair] : state_->pairs)
    if (static_cast<OpenDevice*>(pair->context)->of == &device) state_->break_pair(*pair);
  state_->tell(device, IBV_EVENT_DEVICE_FATAL, 0);
}

void FakeVerbs::tell(const std::string& device, ibv_event_type type, uint8_t port) {
  std::lock_guard lock(state_->mutex);
  state_->tell(state_->device(device), type, port);
}

void FakeVerbs::tell_of_pair(const std::string& device, ibv_event_type type, uint32_t pair) {
  std::lock_guard lock(state_->mutex);
  state_->tell(state_->device(device), type, 0);
  for (OpenDevice* context : state_->open)
    if (context->of == &state_->device(device)) context->events.back().element.qp = state_->pairs.at(pair);
}

void FakeVerbs::set_gid(const std::string& device, int index, const std::string& gid, const std::string& type, uint8_t port) {
  const auto shown = std::filesystem::path(sysfs_) / "class/infiniband" / device / "ports" / std::to_string(port);
  std::ofstream(shown / "gids" / std::to_string(index)) << gid << '\n';
  std::ofstream(shown / "gid_attrs/types" / std::to_string(index)) << type << '\n';
  tell(device, IBV_EVENT_GID_CHANGE, port);
}

void FakeVerbs::lose_acknowledgements(const std::string& device, uint8_t port) {
  std::lock_guard lock(state_->mutex);
  state_->port(device, port).acknowledges = false;
}

void FakeVerbs::hold(bool held) {
  std::lock_guard lock(state_->mutex);
  state_->held = held;
}

void FakeVerbs::swallow() {
  std::lock_guard lock(state_->mutex);
  state_->swallows = true;
}

void FakeVerbs::shuffle(uint64_t seed) {
  std::lock_guard lock(state_->mutex);
  state_->shuffled = seed != 0;
  state_->random.seed(seed);
}

void FakeVerbs::fail(const std::string& function, int error, int nth) {
  std::lock_guard lock(state_->mutex);
  state_->failures[function] = {nth, error};
}

void FakeVerbs::add_gpu(std::span<const std::byte> memory, bool peer_memory) {
  std::lock_guard lock(state_->mutex);
  state_->gpus.emplace_back(memory, peer_memory);
  if (!peer_memory) return;
  std::filesystem::create_directories(sysfs_ + "/module/nvidia_peermem");
  std::ofstream(sysfs_ + "/module/nvidia_peermem/version") << "570.86\n";
}

std::vector<FakeVerbs::Region> FakeVerbs::regions() const {
  std::lock_guard lock(state_->mutex);
  std::vector<Region> all;
  for (const auto& [key, region] : state_->regions) {
    const auto buf = state_->dmabufs.find(key);
    const auto [fd, offset] = buf == state_->dmabufs.end() ? std::pair(-1, uint64_t{0}) : buf->second;
    all.push_back({reinterpret_cast<uint64_t>(region->addr), region->length, offset, fd, state_->access.at(key)});
  }
  return all;
}

void FakeVerbs::keep_completions() { state_->keeps_completions = true; }

FakeCounts FakeVerbs::counts() const {
  std::lock_guard lock(state_->mutex);
  return state_->counts;
}

uint64_t FakeVerbs::bytes_of(const std::string& device) const {
  std::lock_guard lock(state_->mutex);
  return state_->device(device).sent;
}

int FakeVerbs::open_handles() const {
  std::lock_guard lock(state_->mutex);
  return state_->handles;
}

}  // namespace gyre::test
