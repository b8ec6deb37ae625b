// UCC with persistent collectives, as its users are told to: peer_ucc -n N --sizes 8,64M [--yield]. Built where UCC_HOME names one.
#include <sched.h>
#include <ucc/api/ucc.h>

#include <array>
#include <cstdio>
#include <string>

#include "perf/peers/spmd.h"

namespace gyre::peers {
namespace {

class Ucc final : public Peer {
 public:
  Ucc(Member member, std::byte* exchange, bool yield) : member_(member), exchange_(exchange), yield_(yield) {
    ucc_lib_config_h library_config{};
    ucc_lib_params_t library{};
    library.mask = UCC_LIB_PARAM_FIELD_THREAD_MODE;
    library.thread_mode = UCC_THREAD_SINGLE;
    must(ucc_lib_config_read(nullptr, nullptr, &library_config), "configuration");
    must(ucc_init(&library, library_config, &library_), "library");
    ucc_lib_config_release(library_config);
    ucc_context_config_h context_config{};
    ucc_context_params_t context{};
    context.mask = UCC_CONTEXT_PARAM_FIELD_OOB;
    context.oob = out_of_band();
    must(ucc_context_config_read(library_, nullptr, &context_config), "configuration of a context");
    must(ucc_context_create(library_, &context, context_config, &context_), "context");
    ucc_context_config_release(context_config);
    ucc_team_params_t team{};
    team.mask = UCC_TEAM_PARAM_FIELD_OOB | UCC_TEAM_PARAM_FIELD_EP | UCC_TEAM_PARAM_FIELD_EP_RANGE;
    team.oob = out_of_band();
    team.ep = static_cast<uint64_t>(rank());
    team.ep_range = UCC_COLLECTIVE_EP_RANGE_CONTIG;
    must(ucc_team_create_post(&context_, 1, &team, &team_), "team");
    ucc_status_t status = UCC_OK;
    while ((status = ucc_team_create_test(team_)) == UCC_INPROGRESS) ucc_context_progress(context_);
    must(status, "team");
  }
  int rank() const override { return member_.rank; }
  int size() const override { return member_.size; }
  std::string version() const override { return std::string("UCC ") + ucc_get_version_string(); }
  bool supports(Op op, Type type) const override {  // it adds bfloat16 on CPUs, but not float16
    return type == Type::float32 || (type == Type::bfloat16 && op == Op::all_reduce);
  }

  void prepare(const Call& call) override {
    ucc_coll_args_t arguments{};
    arguments.mask = UCC_COLL_ARGS_FIELD_FLAGS;
    arguments.flags = UCC_COLL_ARGS_FLAG_PERSISTENT;
    arguments.op = UCC_OP_SUM;
    arguments.src.info = buffer(call, call.data);
    arguments.dst.info = buffer(call, call.op == Op::all_to_all ? call.apart : call.data);
    arguments.coll_type = kind(call.op);
    if (call.op != Op::broadcast && call.op != Op::all_to_all) arguments.flags |= UCC_COLL_ARGS_FLAG_IN_PLACE;
    must(ucc_collective_init(&arguments, &request_, team_), "collective");
  }
  void finish() override {
    barrier();
    must(ucc_collective_finalize(request_), "end of a collective");
  }
  void run(const Call&) override {
    must(ucc_collective_post(request_), "post");
    ucc_status_t status = UCC_OK;
    while ((status = ucc_collective_test(request_)) == UCC_INPROGRESS) {
      ucc_context_progress(context_);
      if (yield_) sched_yield();
    }
    must(status, "test");
  }
  void barrier() override { member_.barrier(); }
  double hop_ns() override { return member_.hop_ns(); }
  double maximum(double value) override { return member_.maximum(value); }

 private:
  static constexpr size_t slot_bytes = size_t{1} << 20;  // of the exchange, a slot for each rank

  void must(ucc_status_t status, const char* what) const {
    if (status >= 0) return;
    std::fprintf(stderr, "ucc, rank %d: %s: %s\n", rank(), what, ucc_status_string(status));
    _exit(1);
  }
  static ucc_coll_type_t kind(Op op) {
    constexpr std::array all{UCC_COLL_TYPE_ALLREDUCE, UCC_COLL_TYPE_REDUCE_SCATTER, UCC_COLL_TYPE_ALLGATHER, UCC_COLL_TYPE_BCAST,
                             UCC_COLL_TYPE_ALLTOALL};
    return all.at(static_cast<size_t>(op));
  }
  static ucc_coll_buffer_info_t buffer(const Call& call, std::byte* data) {
    ucc_coll_buffer_info_t info{};
    info.buffer = data;
    info.count = call.elements();
    info.datatype = call.type == Type::float32 ? UCC_DT_FLOAT32 : UCC_DT_BFLOAT16;
    info.mem_type = UCC_MEMORY_TYPE_HOST;
    return info;
  }
  ucc_oob_coll_t out_of_band() {
    ucc_oob_coll_t way{};
    way.allgather = &Ucc::all_gather;
    way.req_test = [](void*) { return UCC_OK; };
    way.req_free = [](void*) { return UCC_OK; };
    way.coll_info = this;
    way.n_oob_eps = static_cast<uint32_t>(size());
    way.oob_ep = static_cast<uint32_t>(rank());
    return way;
  }
  static ucc_status_t all_gather(void* from, void* to, size_t bytes, void* self, void** request) {
    auto& ucc = *static_cast<Ucc*>(self);
    *request = self;
    if (bytes > slot_bytes) return UCC_ERR_NO_MEMORY;
    std::memcpy(ucc.exchange_ + static_cast<size_t>(ucc.rank()) * slot_bytes, from, bytes);
    ucc.barrier();
    for (size_t r = 0; r < static_cast<size_t>(ucc.size()); ++r) {
      std::memcpy(static_cast<std::byte*>(to) + r * bytes, ucc.exchange_ + r * slot_bytes, bytes);
    }
    ucc.barrier();
    return UCC_OK;
  }

  Member member_;
  std::byte* exchange_;
  bool yield_;
  ucc_lib_h library_{};
  ucc_context_h context_{};
  ucc_team_h team_{};
  ucc_coll_req_h request_{};
};

}  // namespace
}  // namespace gyre::peers

int main(int argc, char** argv) {
  using namespace gyre::peers;
  Options options;
  CLI::App app{"Times UCC's collectives"};
  add_options(app, options);
  CLI11_PARSE(app, argc, argv);
  const size_t bytes = static_cast<size_t>(options.ranks) << 20;
  void* exchange = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (exchange == MAP_FAILED) return 1;
  return run_ranks(options.ranks, options.bind, [&](Member member) -> int {
    Ucc ucc(member, static_cast<std::byte*>(exchange), options.yield);
    const int status = measure(ucc, options);
    std::fflush(stdout);
    member.barrier();
    _exit(status);  // without UCC's orderly end, of which nothing is measured
  });
}
