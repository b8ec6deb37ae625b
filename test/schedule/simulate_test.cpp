#include "schedule/simulate.h"

#include "test/catch.h"
#include "test/schedule/machines.h"

using namespace gyre;
using namespace gyre::schedule;
using test::ideal;
using test::made;
using test::played;
using test::sliced;

namespace {

constexpr double alpha = 3e-6;
constexpr double beta = 1e-10;
constexpr double gamma_ = 2.5e-11;  // math.h has a gamma
constexpr double megabyte = 1e6;

Approx exactly(double value) { return Approx(value).epsilon(1e-12).margin(0); }

std::string refused(const Schedule& schedule, const Network& network, const Trial& trial) {
  const auto done = simulate(schedule, network, trial);
  return done ? "" : done.error().what;
}

double busiest_port(const Simulation& simulation) {
  double most = 0;
  for (const PortTime& port : simulation.ports) most = std::max(most, port.busy);
  return most;
}

}  // namespace

TEST_CASE("the ideal ring takes what its formula says") {
  for (int n = 2; n <= 32; ++n) {
    CAPTURE(n);
    const double transfers = 2 * (n - 1) * (alpha + megabyte / n * beta);
    CHECK(played(made("ring", n), ideal(n, alpha, beta), sliced(megabyte)).finish == exactly(transfers));
    const double reductions = (n - 1) * megabyte / n * gamma_;
    CHECK(played(made("ring", n), ideal(n, alpha, beta, gamma_), sliced(megabyte)).finish == exactly(transfers + reductions));
  }
}

TEST_CASE("two channels of an ideal ring share its ports") {
  // Each has half of the bytes; its messages go through the port while the other channel's are on their way.
  const double alone = played(made("ring", 4), ideal(4, alpha, beta), sliced(megabyte)).finish;
  const double both = played(made("ring", 4, 2), ideal(4, alpha, beta), sliced(megabyte)).finish;
  CHECK(both < alone);
  CHECK(busiest_port(played(made("ring", 4, 2), ideal(4, alpha, beta), sliced(megabyte))) == exactly(2 * 3 * megabyte / 4 * beta));
  CHECK(both >= 2 * 3 * megabyte / 4 * beta + alpha);
}

TEST_CASE("slices overlap reductions with transfers") {
  const Network network = ideal(8, 0, beta, beta / 2);
  const double whole = played(made("ring", 8), network, sliced(megabyte)).finish;
  const double cut = played(made("ring", 8), network, sliced(megabyte, 16)).finish;
  const double ports = 14 * megabyte / 8 * beta;
  CHECK(whole == exactly(ports + 7 * megabyte / 8 * beta / 2));
  CHECK(cut < ports + 0.15 * (whole - ports));  // of 16 slices, one waits for its reduction at each hop
}

// Two children share their parent's port, so a reduction over the heap can't take less than 2Mβ. In slices of m bytes the last pair of
// slices goes on one level after the other, each 2mβ + α; the first level's are in the 2Mβ.
TEST_CASE("a pipelined heap takes the bytes of its busiest port and its depth, not their product") {
  for (const auto& [ranks, depth] : {std::pair{3, 1}, {7, 2}, {15, 3}, {31, 4}, {63, 5}}) {
    for (const auto collective : {Collective::reduce, Collective::broadcast}) {
      CAPTURE(ranks, name(collective));
      const Schedule tree = made("tree", {collective, ranks, 1, 0, {}});
      const Simulation whole = played(tree, ideal(ranks, alpha, beta), sliced(megabyte));
      CHECK(whole.finish == exactly(depth * (2 * megabyte * beta + alpha)));
      const Simulation cut = played(tree, ideal(ranks, alpha, beta), sliced(megabyte, 64));
      CHECK(busiest_port(cut) == exactly(2 * megabyte * beta));
      const double slice = megabyte / 64 * beta;
      CHECK(cut.finish == exactly(2 * megabyte * beta + depth * alpha + 2 * (depth - 1) * slice));
    }
  }
}

// Both ports of every inner rank are needed for 2Mβ, all the time. Messages are whole here, and a port that finds the other end of all
// its messages busy stands idle meanwhile: that costs up to an eighth. Real ports mix the packets of several messages.
TEST_CASE("a pipelined double tree takes 2Mβ and its depth, not rounds times depth") {
  for (const int ranks : {2, 3, 7, 8, 15, 16, 32, 64}) {
    for (const uint32_t slices : {4U, 8U, 16U}) {
      CAPTURE(ranks, slices);
      Trial trial = sliced(100 * megabyte, slices);
      trial.rounds = 256 / slices;
      const Schedule tree = made("double_tree", ranks);
      const Simulation done = played(tree, ideal(ranks, alpha, beta), trial);
      const double slice = 50 * megabyte / 256 * beta;
      const double port = 200 * megabyte * beta;
      CHECK(busiest_port(done) <= port * (1 + 1e-12));
      CHECK(done.finish >= busiest_port(done));
      CHECK(done.finish <= port * 9 / 8 + *hops(tree) * (alpha + 2 * slice));
      if (ranks == 2) CHECK(done.finish <= port / 2 + 2 * (alpha + slice));  // each tree is one edge
    }
  }
}

// Where the ranks can be paired off anew until everybody has met everybody, no port ever waits; else some do, for at most as long again.
TEST_CASE("everybody to everybody keeps the ports busy") {
  for (const int ranks : {2, 3, 4, 5, 7, 8, 12, 16, 32}) {
    CAPTURE(ranks);
    const double took = played(made("one_shot", ranks), ideal(ranks, alpha, beta), sliced(megabyte)).finish;
    const double ports = (ranks - 1) * megabyte * beta;
    if ((ranks & (ranks - 1)) == 0) CHECK(took == exactly(ports + alpha));
    CHECK(took >= (ports + alpha) * (1 - 1e-12));
    CHECK(took <= 2 * ports + alpha);
  }
}

TEST_CASE("halving and doubling takes log2 messages a way and the least traffic") {
  for (const auto& [ranks, log] : {std::pair{2, 1}, {4, 2}, {8, 3}, {64, 6}, {1024, 10}}) {
    CAPTURE(ranks);
    const Simulation done = played(made("halving_doubling", ranks), ideal(ranks, alpha, beta), sliced(megabyte));
    CHECK(done.finish == exactly(2 * log * alpha + 2 * megabyte * (ranks - 1) / ranks * beta));
  }
}

TEST_CASE("ranks that share a NIC take turns") {
  // Rank r of one node sends to rank r of the other: by NICs of their own at once, by one NIC one after the other.
  topo::Graph graph = topo::clusters(2, 4, {"local", 0, 0, 0, false, {}}, {"network", alpha, beta, 0, false, {}});
  const Schedule schedule = made("hierarchical", {Collective::all_reduce, 8, 1, 0, {4, 2}});
  const auto takes = [&](int nics) {
    graph.nics_per_node = nics;
    return played(schedule, test::machine(graph), sliced(megabyte)).finish;
  };
  // Each local rank exchanges halves of its quarter, twice.
  const double once = megabyte / 8 * beta;
  CHECK(takes(0) == exactly(2 * (alpha + once)));
  CHECK(takes(4) == exactly(2 * (alpha + once)));
  CHECK(takes(1) == exactly(8 * once + alpha));  // the second halves go out while the latest of the first are on their way
  CHECK(takes(2) < takes(1));
  CHECK(takes(2) > takes(4));
}

TEST_CASE("one slower link slows the whole ring") {
  topo::Graph graph = topo::uniform(4, {"link", alpha, beta, 0, false, {}});
  graph.overrides = {{1, 2, 3, false}};
  // Every chunk but one passes it on its way; at the end the ring is as fast as it is, in every round.
  const double usual = alpha + megabyte / 4 * beta;
  const double slow = alpha + 3 * megabyte / 4 * beta;
  const double took = played(made("ring", 4), test::machine(graph), sliced(megabyte)).finish;
  CHECK(took > 5 * slow);
  CHECK(took <= 6 * slow);
  CHECK(took > 6 * usual);
}

TEST_CASE("a missing link is named") {
  topo::Graph graph = topo::uniform(4, {"link", alpha, beta, 0, false, {}});
  graph.overrides = {{2, 1, 1, true}};
  CHECK(refused(made("ring", 4), test::machine(graph), sliced(1)) ==
        "simulation of ring for 4 ranks: rank 1 sends to rank 2, and the network has no link between them");
  graph.overrides = {{0, 2, 1, true}};
  CHECK(refused(made("ring", 4), test::machine(graph), sliced(1)).empty());
}

TEST_CASE("without jitter nothing is random, with it the seed decides") {
  Trial trial = sliced(megabyte, 4);
  const auto takes = [&](double jitter, uint64_t seed) {
    trial.jitter = jitter;
    trial.seed = seed;
    return played(made("ring", 8), ideal(8, alpha, beta, gamma_), trial).finish;
  };
  CHECK(takes(0, 1) == takes(0, 2));
  CHECK(takes(0.1, 1) == takes(0.1, 1));
  CHECK(takes(0.1, 1) != takes(0.1, 2));
  for (uint64_t seed = 0; seed < 10; ++seed) {
    CHECK(takes(0.1, seed) > takes(0, 0));
    CHECK(takes(0.1, seed) <= takes(0, 0) * 1.1);
    CHECK(takes(0.1, seed) < takes(0.2, seed));
  }
}

TEST_CASE("a straggler delays everybody by its delay") {
  Trial trial = sliced(megabyte);
  const Network network = ideal(8, alpha, beta, gamma_);
  for (const auto* family : {"ring", "halving_doubling", "naive"}) {
    CAPTURE(family);
    trial.stragglers.clear();
    const double usual = played(made(family, 8), network, trial).finish;
    trial.stragglers = {{3, 1, 0.1}};
    const Simulation late = played(made(family, 8), network, trial);
    CHECK(late.finish > 0.1);
    CHECK(late.finish <= (0.1 + usual) * (1 + 1e-12));
    for (const double finish : late.rank_finish) CHECK(finish > 0.1);
    CHECK(late.path.front().kind == Stretch::Kind::delay);
    CHECK(late.path.front().rank == 3);
  }
  trial.stragglers = {{3, 10, 0}};
  const double reductions = 7 * megabyte / 8 * gamma_;
  const double slow = played(made("ring", 8), network, trial).finish;
  // Its reductions come one after the other, while the next chunks arrive; before them is one transfer, after them is the all-gather.
  CHECK(slow == exactly(10 * reductions + (1 + 7) * (alpha + megabyte / 8 * beta)));
}

TEST_CASE("processors have their costs") {
  // Two ranks send each other a chunk, twice: s, rrcs and r; each waits for the other.
  const auto takes = [](double overhead, const RankCosts& costs) {
    topo::Graph graph = topo::uniform(2, {"link", alpha, beta, overhead, false, {}}, costs);
    return played(made("ring", 2), test::machine(graph), sliced(megabyte)).finish;
  };
  const double usual = takes(0, {});
  const double half = megabyte / 2;
  CHECK(takes(0, {0, 0, 1e-6}) == exactly(usual + 3e-6));
  CHECK(takes(1e-6, {}) == exactly(usual + 4e-6));  // two messages sent, two received
  CHECK(takes(0, {gamma_, 0, 0}) == exactly(usual + half * gamma_));
  CHECK(takes(0, {0, gamma_, 0}) == exactly(usual + half * gamma_));  // of r; what reduces writes for nothing
}

TEST_CASE("ranks of one processor take turns") {
  topo::Graph graph = topo::uniform(4, {"link", 0, 0, 0, false, {}}, {0, 0, 1e-6});
  const auto takes = [&](int processors) {
    graph.processors_per_node = processors;
    return played(made("ring", 4), test::machine(graph), sliced(megabyte)).finish;
  };
  CHECK(takes(0) == exactly(7e-6));  // 2N-1 fused steps
  CHECK(takes(1) == exactly(4 * 7e-6));
  CHECK(takes(2) == exactly(2 * 7e-6));
}

TEST_CASE("where processors move the bytes, there are no ports") {
  const auto takes = [](Mode mode) {
    Trial trial = sliced(megabyte);
    trial.conditions.mode = mode;
    const Network network = test::machine(topo::uniform(2, {"shared memory", alpha, beta, 0, true, {}}, {0, gamma_, 0}));
    const Simulation done = played(made("ring", 2), network, trial);
    CHECK(done.ports.empty());
    return done.finish;
  };
  const double half = megabyte / 2;
  CHECK(takes(Mode::buffered) == exactly(2 * (half * beta + alpha) + half * gamma_));  // written to slots twice, and out of one by r
  CHECK(takes(Mode::posted) == exactly(2 * (half * beta + alpha)));                    // read in place
  CHECK(takes(Mode::mapped) == exactly(2 * (half * beta + alpha)));
}

TEST_CASE("a sender without credits waits for its receiver") {
  // A chain's worth of slices: each waits until the one before it was taken, and the news of that take alpha.
  Trial trial = sliced(megabyte, 8);
  const Schedule schedule = made("tree", {Collective::broadcast, 2, 1, 0, {}});
  const double slice = megabyte / 8 * beta;
  CHECK(played(schedule, ideal(2, alpha, beta), trial).finish == exactly(8 * slice + alpha));
  trial.conditions.credits = 1;
  CHECK(played(schedule, ideal(2, alpha, beta), trial).finish == exactly(8 * (slice + alpha) + 7 * alpha));
}

TEST_CASE("a schedule that deadlocks says who waits for whom") {
  Trial trial = sliced(megabyte);
  trial.conditions.credits = 1;
  CHECK(refused(made("ring", 2), ideal(2, alpha, beta), trial) ==
        "simulation of ring for 2 ranks: deadlock: rank 0 channel 0 step 1 (rrcs) waits for a credit to rank 1; rank 1 channel 0 step 1 "
        "(rrcs) waits for a credit to rank 0;");
}

TEST_CASE("every family runs to its end in every mode, and the critical path explains all of its time") {
  for (const topo::Family& family : topo::families()) {
    for (const Collective collective : all_collectives()) {
      const topo::Shape shape{collective, 6, 2, rooted(collective) ? 2 : 0, {3, 2}};
      if (!topo::refusal(family, shape).empty()) continue;
      for (const auto mode : {Mode::buffered, Mode::posted, Mode::mapped}) {
        CAPTURE(family.name, name(collective), static_cast<int>(mode));
        Trial trial = sliced(megabyte, 3);
        trial.conditions.mode = mode;
        trial.rounds = 2;
        trial.jitter = 0.1;
        topo::Graph graph =
            topo::clusters(2, 3, {"local", 1e-6, 1e-11, 1e-7, false, {}}, {"network", alpha, beta, 1e-7, false, {}}, {1e-11, 1e-11, 1e-7});
        graph.nics_per_node = 1;
        const Schedule schedule = made(family.name, shape);
        const Simulation done = played(schedule, test::machine(graph), trial);
        size_t steps = 0;
        for (const Program& program : schedule.programs) steps += program.steps.size() * 3 * 2;
        CHECK(done.steps.size() == steps);
        CHECK(done.path.front().begin == 0);
        CHECK(done.path.back().end == done.finish);
        bool gaps = false;
        for (size_t i = 1; i < done.path.size(); ++i) gaps = gaps || done.path[i].begin != done.path[i - 1].end;
        CHECK_FALSE(gaps);
        bool late = false;
        for (const MessageTime& message : done.messages) {
          const StepTime& sender = done.steps[message.sender];
          const StepTime& receiver = done.steps[message.receiver];
          late = late || message.departure < sender.end || message.arrival < message.left || receiver.start < message.arrival;
        }
        CHECK_FALSE(late);
      }
    }
  }
}

TEST_CASE("what makes no sense is refused") {
  const Schedule ring = made("ring", 4);
  const Network network = ideal(4, alpha, beta);
  const auto with = [&](auto change) {
    Trial trial = sliced(megabyte);
    change(trial);
    return refused(ring, network, trial);
  };
  CHECK(refused(ring, ideal(3, alpha, beta), sliced(1)) == "simulation of ring for 4 ranks: the network has 3 ranks");
  Schedule torn = ring;
  torn.programs.pop_back();
  CHECK(refused(torn, ideal(4, alpha, beta), sliced(1)) == "simulation of ring for 4 ranks: rank 3 has no program on channel 0 strand 0");
  CHECK(with([](Trial& t) { t.block_bytes = -1; }) == "simulation of ring for 4 ranks: a block of -1 bytes");
  CHECK(with([](Trial& t) { t.rounds = 0; }) == "simulation of ring for 4 ranks: 0 rounds of 1 slices");
  CHECK(with([](Trial& t) { t.jitter = -0.5; }) == "simulation of ring for 4 ranks: a jitter of -0.5");
  CHECK(with([](Trial& t) { t.stragglers = {{4, 1, 0}}; }) == "simulation of ring for 4 ranks: a straggler of rank 4");
  CHECK(with([](Trial& t) { t.stragglers = {{0, -1, 0}}; }) == "simulation of ring for 4 ranks: a straggler by a factor of -1 and 0 s");
}

TEST_CASE("a trial is cut into rounds of slices that are in flight together") {
  const Schedule ring = made("ring", 4);
  const auto cut = [&](double block, double slice, uint32_t most) {
    const Trial made = trial(ring, block, slice, {2 * most, most, Mode::buffered, false});
    return std::pair{made.conditions.slices, made.rounds};
  };
  CHECK(cut(4000, 1000, 8) == std::pair{1U, 1U});
  CHECK(cut(4004, 1000, 8) == std::pair{2U, 1U});
  CHECK(cut(40000, 1000, 8) == std::pair{5U, 2U});
  CHECK(cut(0, 1000, 8) == std::pair{1U, 1U});
}
