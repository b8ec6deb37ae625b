// Open MPI and MPICH, built once with each one's mpicxx: mpirun -n N peer_openmpi --sizes 8,64M
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <string>

#include "perf/peers/measure.h"

namespace gyre::peers {
namespace {

class Mpi final : public Peer {
 public:
  explicit Mpi(bool yield) : yield_(yield) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::string version() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::string line(text);
    line = line.substr(0, line.find('\n'));
    line = line.substr(0, line.find(", package"));
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '\t' || c == '"' || c == '\\'; }, ' ');
    return line;
  }

  void run(const Call& call) override {
    const int block = static_cast<int>(call.block);
    switch (call.op) {
      case Op::all_reduce:
        sum_or_maximum(call.data, block, MPI_FLOAT, MPI_SUM);
        break;
      case Op::reduce_scatter:
        call_or_wait(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPI_IN_PLACE, call.data, block, MPI_FLOAT, MPI_SUM);
        break;
      case Op::all_gather:
        call_or_wait(MPI_Allgather, MPI_Iallgather, MPI_IN_PLACE, block, MPI_FLOAT, call.data, block, MPI_FLOAT);
        break;
      case Op::broadcast:
        call_or_wait(MPI_Bcast, MPI_Ibcast, call.data, block, MPI_FLOAT, 0);
        break;
      case Op::all_to_all:
        call_or_wait(MPI_Alltoall, MPI_Ialltoall, call.data, block, MPI_FLOAT, call.apart, block, MPI_FLOAT);
        break;
    }
  }
  // In place, MPI puts a rank's block of a reduce-scatter at the beginning.
  const std::byte* result(const Call& call) const override { return call.op == Op::all_to_all ? call.apart : call.data; }

  void barrier() override { call_or_wait(MPI_Barrier, MPI_Ibarrier); }

  double maximum(double value) override {
    sum_or_maximum(&value, 1, MPI_DOUBLE, MPI_MAX);
    return value;
  }

 private:
  void sum_or_maximum(void* data, int count, MPI_Datatype type, MPI_Op op) const {
    call_or_wait(MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, data, count, type, op);
  }

  /// The blocking call, or for a library whose blocking calls never give their CPU away the other one.
  template <class Blocking, class Other, class... Arguments>
  void call_or_wait(Blocking blocking, Other other, Arguments... arguments) const {
    if (!yield_) {
      blocking(arguments..., MPI_COMM_WORLD);
      return;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    other(arguments..., MPI_COMM_WORLD, &request);
    wait(request);
  }

  static void wait(MPI_Request& request) {
    for (int done = 0;;) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done != 0) return;
      sched_yield();
    }
  }

  bool yield_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace
}  // namespace gyre::peers

int main(int argc, char** argv) {
  gyre::peers::Options options;
  CLI::App app{"Times MPI's collectives; start it with mpirun"};
  gyre::peers::add_options(app, options);
  CLI11_PARSE(app, argc, argv);
  MPI_Init(&argc, &argv);
  gyre::peers::Mpi peer(options.yield);
  const int status = gyre::peers::measure(peer, options);
  MPI_Finalize();
  return status;
}
