#include "schedule/verify.h"
#include "test/catch.h"
#include "test/schedule/script.h"

using namespace gyre;
using namespace gyre::schedule;
using test::in_0;
using test::none;
using test::out_0;
using test::Script;

namespace {

constexpr Chunks tmp_0{Buffer::scratch, 0, 1};
constexpr Chunks tmp_1{Buffer::scratch, 1, 1};
constexpr Mode all_modes[] = {Mode::buffered, Mode::posted, Mode::mapped};

std::string error_of(const Schedule& schedule, Mode mode, bool in_place = false) {
  const auto proof = verify(schedule, {2, 1, mode, in_place});
  return proof ? "" : proof.error().what.substr(proof.error().what.find("): ") + 3);
}

/// A heap tree: up on strand 0, down on strand 1; the root sends down what it reduces. Inner ranks keep what they send up in the output.
Script tree(int ranks) {
  Script s(Collective::all_reduce, ranks, 1, 0, 2);
  for (Rank r = 0; r < ranks; ++r) {
    std::vector<Rank> children;
    for (const Rank child : {2 * r + 1, 2 * r + 2}) {
      if (child < ranks) children.push_back(child);
    }
    const Rank parent = (r - 1) / 2;
    s.on(0).step(r, children, in_0, out_0, r == 0 ? children : std::vector{parent});
    if (r != 0) s.on(1).step(r, {parent}, none, out_0, children);
  }
  return s;
}

}  // namespace

TEST_CASE("a tree whose ways up and down are strands is ordered, in place and not, in all modes") {
  for (int ranks = 2; ranks <= 33; ++ranks) {
    for (const Mode mode : all_modes) {
      for (const bool in_place : {false, true}) {
        INFO(ranks << " ranks, mode " << static_cast<int>(mode) << (in_place ? ", in place" : ""));
        CHECK(error_of(tree(ranks), mode, in_place) == "");
      }
    }
  }
}

TEST_CASE("an access that nothing orders with another strand's is found in each mode, with both steps") {
  // Rank 0's strand 0 uses scratch for itself, and strand 1 for what rank 1 sends.
  Script s(Collective::all_gather, 2, 1, 1, 2);
  s.on(0).step(0, {}, in_0, none, {1});
  s.on(0).step(0, {}, in_0, tmp_0, {}).step(0, {}, tmp_0, out_0, {});
  s.on(1).step(0, {1}, none, tmp_0, {}).step(0, {}, tmp_0, {Buffer::output, 1, 1}, {});
  s.on(0).step(1, {}, in_0, {Buffer::output, 1, 1}, {0}).step(1, {0}, none, out_0, {});
  for (const Mode mode : all_modes) {
    CHECK(error_of(s, mode) ==
          "rank 0 channel 0 strand 1 step 0 writes scratch chunk 0 while it is written by strand 0 step 1: no message orders them");
  }
}

TEST_CASE("a read is no race with a read") {
  Script s(Collective::all_gather, 2, 1, 0, 2);
  s.on(0).step(0, {}, in_0, none, {1}).step(0, {1}, none, {Buffer::output, 1, 1}, {});
  s.on(1).step(0, {}, in_0, out_0, {});
  s.on(0).step(1, {}, in_0, {Buffer::output, 1, 1}, {0}).step(1, {0}, none, out_0, {});
  for (const Mode mode : all_modes) CHECK(error_of(s, mode) == "");
  // In place, the copy writes what it reads, and so what strand 0 sends.
  for (const Mode mode : all_modes) {
    CHECK(error_of(s, mode, true) ==
          "rank 0 channel 0 strand 1 step 0 writes output chunk 0 while it is read by strand 0 step 0: no message orders them");
  }
}

TEST_CASE("an answer orders what a strand overwrites after what another has sent") {
  const auto script = [](bool answers) {
    Script s(Collective::all_gather, 2, 1, 1, 2);
    s.on(0).step(0, {}, in_0, tmp_0, {}).step(0, {}, tmp_0, out_0, {1});
    s.on(1).step(0, {1}, none, tmp_0, {}).step(0, {}, tmp_0, {Buffer::output, 1, 1}, {});
    s.on(0);
    if (answers) s.step(1, {0}, none, out_0, {});
    s.step(1, {}, in_0, {Buffer::output, 1, 1}, {0});
    if (!answers) s.step(1, {0}, none, out_0, {});
    return s;
  };
  for (const Mode mode : all_modes) {
    CHECK(error_of(script(true), mode) == "");
    CHECK(error_of(script(false), mode) != "");
  }
}

TEST_CASE("a transport that still reads is found where the step that sent is over") {
  // Rank 0's strand 1 hears by way of rank 2 that strand 0's send to rank 1 has run, but not that rank 1 has received it.
  Script s(Collective::broadcast, 3, 1, 1, 2);
  s.on(0).step(0, {}, in_0, tmp_0, {}).step(0, {}, tmp_0, none, {1}).step(0, {}, in_0, out_0, {2});
  s.on(1).step(0, {2}, none, tmp_0, {});
  s.on(0).step(1, {0}, none, out_0, {});
  s.on(0).step(2, {0}, none, out_0, {0});
  CHECK(error_of(s, Mode::buffered) == "");
  for (const Mode mode : {Mode::posted, Mode::mapped}) {
    CHECK(error_of(s, mode) ==
          "rank 0 channel 0 strand 1 step 0 writes scratch chunk 0 while it is under way, sent from there by strand 0 step 1: "
          "no message orders them");
  }
}

TEST_CASE("the strand that sent waits for its own transport") {
  // As above, but on one strand: the last step waits until rank 1 has the message. Which is in time, since nobody waits for rank 0.
  Script s(Collective::broadcast, 3, 1, 1);
  s.step(0, {}, in_0, tmp_0, {}).step(0, {}, tmp_0, none, {1}).step(0, {}, in_0, out_0, {2}).step(0, {2}, none, tmp_0, {});
  s.step(1, {0}, none, out_0, {});
  s.step(2, {0}, none, out_0, {0});
  for (const Mode mode : all_modes) CHECK(error_of(s, mode) == "");
}

namespace {

/// Rank 0's strand 1 hears from rank 2 that strand 0 has read scratch, and then takes from rank 1 what overwrites it. But rank 1 sent
/// that before strand 0 read.
Script ahead(bool reads_between) {
  Script s(Collective::broadcast, 3, 1, 2, 2);
  s.on(0).step(0, {}, in_0, tmp_0, {}).step(0, {}, in_0, none, {1}).step(0, {}, tmp_0, out_0, {}).step(0, {}, out_0, none, {2});
  s.on(1).step(0, {2}, none, tmp_1, {});
  if (reads_between) s.step(0, {}, tmp_0, tmp_1, {});
  s.step(0, {1}, none, tmp_0, {});
  s.on(0).step(1, {0}, none, out_0, {0});
  s.on(0).step(2, {0}, none, out_0, {0});
  return s;
}

}  // namespace

TEST_CASE("a receive that lands ahead of its step is found where its step is in order") {
  CHECK(error_of(ahead(false), Mode::buffered) == "");
  CHECK(error_of(ahead(false), Mode::mapped) == "");
  CHECK(error_of(ahead(false), Mode::posted) ==
        "rank 0 channel 0 strand 1 step 1 writes scratch chunk 0 while it is read by strand 0 step 2: no message orders them");
}

TEST_CASE("a receive is not announced before the strand's last access to where it lands, and that orders it") {
  for (const Mode mode : all_modes) CHECK(error_of(ahead(true), mode) == "");
}

TEST_CASE("one strand sends to a rank, and one receives from it") {
  Script sends(Collective::broadcast, 2, 1, 0, 2);
  sends.on(0).step(0, {}, in_0, out_0, {1}).on(1).step(0, {}, in_0, none, {1});
  sends.on(0).step(1, {0}, none, out_0, {});
  CHECK(error_of(sends, Mode::buffered) ==
        "rank 0 channel 0 strand 1 step 0 sends to rank 1, and so does strand 0: their messages would have no order");
  Script receives(Collective::broadcast, 2, 1, 0, 2);
  receives.on(0).step(0, {}, in_0, out_0, {1});
  receives.on(0).step(1, {0}, none, out_0, {}).on(1).step(1, {0}, none, out_0, {});
  CHECK(error_of(receives, Mode::buffered) ==
        "rank 1 channel 0 strand 1 step 0 receives from rank 0, and so does strand 0: their messages would have no order");
}

TEST_CASE("a rank's strands may send to different ranks, and receive from different ranks") {
  Script s(Collective::broadcast, 3, 1, 0, 2);
  s.on(0).step(0, {}, in_0, out_0, {1}).on(1).step(0, {}, in_0, none, {2});
  s.on(0).step(1, {0}, none, out_0, {}).step(2, {0}, none, out_0, {});
  for (const Mode mode : all_modes) CHECK(error_of(s, mode) == "");
}
