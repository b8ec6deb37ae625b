// Gloo over TCP on the loopback interface, its only way between processes on CPUs: peer_gloo -n N --sizes 8,64M
// The algorithm is its default, the ring; the addition is ours (Gloo leaves it to the caller) and vectorizes.
#include <gloo/allreduce.h>
#include <gloo/config.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "perf/peers/spmd.h"

namespace gyre::peers {
namespace {

void add(void* sum, const void* left, const void* right, size_t count) {
  auto* s = static_cast<float*>(sum);
  const auto* l = static_cast<const float*>(left);
  const auto* r = static_cast<const float*>(right);
#ifndef __clang__  // sum and left may be the same: no reason for g++ to add one by one
#pragma GCC ivdep
#endif
  for (size_t i = 0; i < count; ++i) s[i] = l[i] + r[i];
}

class Gloo final : public Peer {
 public:
  Gloo(Member member, const std::string& store_folder)
      : member_(member), context_(std::make_shared<gloo::rendezvous::Context>(member.rank, member.size)) {
    gloo::transport::tcp::attr address;
    address.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(address);
    auto store = std::make_shared<gloo::rendezvous::FileStore>(store_folder);
    connect(*context_, store, device);
  }
  int rank() const override { return member_.rank; }
  int size() const override { return member_.size; }
  std::string version() const override {
    return "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) + "." +
           std::to_string(GLOO_VERSION_PATCH);
  }

  void prepare(std::span<float> data) override {
    call_.emplace(context_);
    call_->setOutput(data.data(), data.size());
    call_->setReduceFunction(&add);
    call_->setTag(++tag_);
  }
  void finish() override {
    barrier();  // a rank still waiting for bytes needs the others' buffers
    call_.reset();
  }
  void all_reduce(std::span<float> /*data*/) override { gloo::allreduce(*call_); }
  void barrier() override { member_.barrier(); }
  double maximum(double value) override { return member_.maximum(value); }

 private:
  /// Releases differ: older ones take a reference to the store, newer ones a shared pointer.
  template <class Context, class Store, class Device>
  static void connect(Context& context, std::shared_ptr<Store> store, Device& device) {
    if constexpr (requires { context.connectFullMesh(*store, device); }) {
      context.connectFullMesh(*store, device);
    } else {
      std::shared_ptr<gloo::rendezvous::Store> base = store;
      context.connectFullMesh(base, device);
    }
  }

  Member member_;
  std::shared_ptr<gloo::rendezvous::Context> context_;  // shared: Gloo asks for it
  std::optional<gloo::AllreduceOptions> call_;
  uint32_t tag_ = 0;
};

int run_rank(Member member, const Options& options, const std::string& store_folder) {
  try {
    Gloo peer(member, store_folder);
    const int status = measure(peer, options);
    member.barrier();
    std::fflush(stdout);
    _exit(status);  // Gloo's orderly end reports the other ranks' exits as errors
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gloo, rank %d: %s\n", member.rank, error.what());
    return 1;
  }
}

}  // namespace
}  // namespace gyre::peers

int main(int argc, char** argv) {
  gyre::peers::Options options;
  CLI::App app{"Times gloo::allreduce over TCP"};
  gyre::peers::add_options(app, options);
  CLI11_PARSE(app, argc, argv);
  std::string folder = (std::filesystem::temp_directory_path() / "peer_gloo.XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror("mkdtemp");
    return 1;
  }
  const int status = gyre::peers::run_ranks(options.ranks, options.bind,
                                            [&](gyre::peers::Member member) { return gyre::peers::run_rank(member, options, folder); });
  std::error_code ignored;  // a folder left behind is no wrong measurement
  std::filesystem::remove_all(folder, ignored);
  return status;
}
