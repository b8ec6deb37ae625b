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

  void all_reduce(std::span<float> data) override { sum_or_maximum(data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM); }

  void barrier() override {
    if (!yield_) {
      MPI_Barrier(MPI_COMM_WORLD);
      return;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    wait(request);
  }

  double maximum(double value) override {
    sum_or_maximum(&value, 1, MPI_DOUBLE, MPI_MAX);
    return value;
  }

 private:
  void sum_or_maximum(void* data, int count, MPI_Datatype type, MPI_Op op) const {
    if (!yield_) {
      MPI_Allreduce(MPI_IN_PLACE, data, count, type, op, MPI_COMM_WORLD);
      return;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(MPI_IN_PLACE, data, count, type, op, MPI_COMM_WORLD, &request);
    wait(request);
  }

  /// For a library whose blocking calls never give their CPU away.
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
  CLI::App app{"Times MPI_Allreduce; start it with mpirun"};
  gyre::peers::add_options(app, options);
  CLI11_PARSE(app, argc, argv);
  MPI_Init(&argc, &argv);
  gyre::peers::Mpi peer(options.yield);
  const int status = gyre::peers::measure(peer, options);
  MPI_Finalize();
  return status;
}
