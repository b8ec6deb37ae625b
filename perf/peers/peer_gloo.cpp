// Gloo over TCP on the loopback interface, its only way between processes on CPUs: peer_gloo -n N --sizes 8,64M
// The algorithm is its default, the ring; the addition is ours (Gloo leaves it to the caller) and vectorizes.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "perf/peers/spmd.h"

namespace gyre::peers {
namespace {

template <class T>
void add(void* sum, const void* left, const void* right, size_t count) {
  auto* s = static_cast<T*>(sum);
  const auto* l = static_cast<const T*>(left);
  const auto* r = static_cast<const T*>(right);
#ifndef __clang__  // sum and left may be the same: no reason for g++ to add one by one
#pragma GCC ivdep
#endif
  for (size_t i = 0; i < count; ++i) s[i] = static_cast<T>(l[i] + r[i]);
}
void add_to(float* sum, const float* part, size_t count) { add<float>(sum, sum, part, count); }

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

  bool supports(Op op, Type type) const override { return type == Type::float32 || (type == Type::float16 && op == Op::all_reduce); }
  void prepare(const Call& call) override {
    if (call.type == Type::float16) {
      prepare_all_reduce<gloo::float16, _Float16>(call);
    } else if (call.op == Op::all_reduce) {
      prepare_all_reduce<float, float>(call);
    } else {
      prepare_other(call);
    }
  }
  // Gloo puts a rank's block of a reduce-scatter at the beginning.
  const std::byte* result(const Call& call) const override { return call.op == Op::all_to_all ? call.apart : call.data; }
  void finish() override {
    barrier();  // a rank still waiting for bytes needs the others' buffers
    call_ = nullptr;
    barrier();
  }
  void run(const Call&) override { call_(); }
  void barrier() override { member_.barrier(); }
  double maximum(double value) override { return member_.maximum(value); }

 private:
  // gloo: its name of the type; T: the type that we add in.
  // What a call takes is shared since a function must be copyable, and it is not.
  template <class GlooType, class T>
  void prepare_all_reduce(const Call& call) {
    auto options = std::make_shared<gloo::AllreduceOptions>(context_);
    options->setOutput(reinterpret_cast<GlooType*>(call.data), call.elements());
    options->setReduceFunction(&add<T>);
    options->setTag(++tag_);
    call_ = [options] { gloo::allreduce(*options); };
  }
  void prepare_other(const Call& call) {
    auto* data = reinterpret_cast<float*>(call.data);
    if (call.op == Op::reduce_scatter) {
      const std::vector<int> blocks(static_cast<size_t>(size()), static_cast<int>(call.block));
      auto algorithm = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(context_, std::vector<float*>{data},
                                                                                   static_cast<int>(call.elements()), blocks, &sum_);
      call_ = [algorithm] { algorithm->run(); };
    } else if (call.op == Op::all_gather) {
      auto options = std::make_shared<gloo::AllgatherOptions>(context_);
      options->setOutput(data, call.elements());
      options->setTag(++tag_);
      call_ = [options] { gloo::allgather(*options); };
    } else if (call.op == Op::broadcast) {
      auto options = std::make_shared<gloo::BroadcastOptions>(context_);
      options->setOutput(data, call.elements());
      options->setRoot(0);
      options->setTag(++tag_);
      call_ = [options] { gloo::broadcast(*options); };
    } else {
      auto options = std::make_shared<gloo::AlltoallOptions>(context_);
      options->setInput(data, call.elements());
      options->setOutput(reinterpret_cast<float*>(call.apart), call.elements());
      options->setTag(++tag_);
      call_ = [options] { gloo::alltoall(*options); };
    }
  }

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
  gloo::ReductionFunction<float> sum_{gloo::SUM, &add_to};
  std::function<void()> call_;
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
  CLI::App app{"Times Gloo's collectives over TCP"};
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
