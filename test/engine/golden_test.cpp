// A worked case of the ring: 4 ranks, 9 integers each; golden/ring_4x9.csv holds every rank's whole state after each step.
#include <array>
#include <fstream>
#include <map>
#include <sstream>

#include "engine/host_machine.h"
#include "test/all_reduce.h"
#include "test/catch.h"
#include "test/engine/loopback_mesh.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::engine;

namespace {

constexpr int ring_ranks = 4;
constexpr size_t ring_elements = 9;
using State = std::array<std::array<int, ring_elements>, ring_ranks>;  // [rank][element]

/// The states in the order of the file: the input, then one after each step.
std::vector<State> golden_states() {
  std::ifstream file(GYRE_SOURCE_DIR "/test/golden/ring_4x9.csv");
  std::string line;
  std::getline(file, line);  // phase,step,element,A,B,C,D
  std::vector<State> states;
  while (std::getline(file, line)) {
    std::istringstream row(line);
    std::string phase, step, cell;
    std::getline(row, phase, ',');
    std::getline(row, step, ',');
    std::getline(row, cell, ',');
    const size_t element = std::stoul(cell);
    if (element == 0) states.emplace_back();
    for (auto& state : states.back()) {
      std::getline(row, cell, ',');
      state.at(element) = std::stoi(cell);
    }
  }
  return states;
}

std::shared_ptr<const Proven> unfused_ring() {
  auto proven = std::make_shared<Proven>();
  proven->schedule = test::all_reduce("ring", ring_ranks, 1);
  proven->proof = *schedule::verify(proven->schedule, {2, 1, schedule::Mode::buffered, true});
  return proven;
}

/// The states of all ranks before the first and after every step of the ring; a step of the ring is a send and a receive on every rank.
template <class T>
std::vector<State> run_step_by_step(const State& input, DataType type) {
  const Plan plan = *Plan::make(unfused_ring(), {Collective::all_reduce, ring_elements, type, ReduceOp::sum, 0}, 4096, sizeof(T));
  test::LoopbackMesh mesh(ring_ranks, {2, 4096});
  std::array<std::array<T, ring_elements>, ring_ranks> memory{};
  std::vector<HostMachine> machines;
  for (size_t rank = 0; rank < ring_ranks; ++rank) {
    std::copy(input[rank].begin(), input[rank].end(), memory[rank].begin());
    machines.emplace_back(static_cast<Rank>(rank), 0, 0, mesh.fifos(rank), Away{8192, 1});
  }
  for (size_t rank = 0; rank < ring_ranks; ++rank)
    machines[rank].bind(plan, plan.hash(), {memory[rank].data(), memory[rank].data()}, nullptr);
  std::vector<State> states;
  const auto note = [&] {
    State& state = states.emplace_back();
    for (size_t rank = 0; rank < ring_ranks; ++rank) {
      for (size_t i = 0; i < ring_elements; ++i) state[rank][i] = static_cast<int>(memory[rank][i]);
    }
  };
  note();
  while (!machines[0].done()) {
    for (int half = 0; half < 2; ++half) {
      for (HostMachine& machine : machines) {
        if (!machine.run(1)) return states;  // a rank is stuck: too few states say so
      }
    }
    note();
  }
  return states;
}

}  // namespace

TEST_CASE("the ring run step by step gives the states of the worked case") {
  const auto golden = golden_states();
  REQUIRE(golden.size() == 7);
  CHECK(run_step_by_step<int32_t>(golden[0], DataType::int32) == golden);
  CHECK(run_step_by_step<float>(golden[0], DataType::float32) == golden);
}

TEST_CASE("a step of gradient descent with the worked case's sums gives every rank the same weights") {
  const auto golden = golden_states();
  REQUIRE(golden.size() == 7);
  const auto states = run_step_by_step<int32_t>(golden[0], DataType::int32);
  constexpr std::array<int, ring_elements> weights{173, 38, 16, 117, 80, 72, 67, 45, 198};
  constexpr std::array<int, ring_elements> expected{165, 31, 12, 115, 72, 77, 62, 46, 197};
  for (const auto& sums : states.back()) {
    std::array<int, ring_elements> updated{};
    for (size_t i = 0; i < ring_elements; ++i) updated[i] = weights[i] - 1 * sums[i];
    CHECK(updated == expected);
  }
}
