#include "schedule/print.h"

#include "schedule/fuse.h"
#include "test/all_reduce.h"
#include "test/catch.h"
#include "topo/algorithms.h"

using namespace gyre;
using namespace gyre::schedule;

TEST_CASE("the ring of three ranks reads as drawn") {
  CHECK("\n" + print(test::all_reduce("ring", 3, 1)) == R"(
step  rank 0                rank 1                rank 2
   0  s in[0] >1            s in[1] >2            s in[2] >0
   1  rrc <2 in[2] =out[2]  rrc <0 in[0] =out[0]  rrc <1 in[1] =out[1]
   2  s out[2] >1           s out[0] >2           s out[1] >0
   3  rrc <2 in[1] =out[1]  rrc <0 in[2] =out[2]  rrc <1 in[0] =out[0]
   4  s out[1] >1           s out[2] >2           s out[0] >0
   5  r <2 =out[0]          r <0 =out[1]          r <1 =out[2]
   6  s out[0] >1           s out[1] >2           s out[2] >0
   7  r <2 =out[2]          r <0 =out[0]          r <1 =out[1]
)");
}

TEST_CASE("the fused ring of three ranks reads as drawn") {
  CHECK("\n" + print(fuse(test::all_reduce("ring", 3, 1))) == R"(
step  rank 0                    rank 1                    rank 2
   0  s in[0] >1                s in[1] >2                s in[2] >0
   1  rrs <2 in[2] >1           rrs <0 in[0] >2           rrs <1 in[1] >0
   2  rrcs <2 in[1] =out[1] >1  rrcs <0 in[2] =out[2] >2  rrcs <1 in[0] =out[0] >0
   3  rcs <2 =out[0] >1         rcs <0 =out[1] >2         rcs <1 =out[2] >0
   4  r <2 =out[2]              r <0 =out[0]              r <1 =out[1]
)");
}

TEST_CASE("naive for three ranks reads as drawn") {
  CHECK("\n" + print(test::all_reduce("naive", 3, 1)) == R"(
step  rank 0                        rank 1        rank 2
   0  rrcs <1,2 in[0] =out[0] >1,2  s in[0] >0    s in[0] >0
   1                                r <0 =out[0]  r <0 =out[0]
)");
}

TEST_CASE("one_shot for three ranks reads as drawn") {
  CHECK("\n" + print(test::all_reduce("one_shot", 3, 1)) == R"(
step  rank 0                  rank 1                  rank 2
   0  cs in[0] =tmp[0] >1,2   cs in[0] =tmp[0] >0,2   cs in[0] =tmp[0] >0,1
   1  rrc <1,2 in[0] =out[0]  rrc <0,2 in[0] =out[0]  rrc <0,1 in[0] =out[0]
)");
}

TEST_CASE("several channels are a table each") {
  CHECK("\n" + print(test::all_reduce("naive", 2, 2)) == R"(
channel 0
step  rank 0                    rank 1
   0  rrcs <1 in[0] =out[0] >1  s in[0] >0
   1                            r <0 =out[0]
channel 1
step  rank 0                    rank 1
   0  rrcs <1 in[1] =out[1] >1  s in[1] >0
   1                            r <0 =out[1]
)");
}

TEST_CASE("several chunks are shown as a range with its stride") {
  Builder b("wide", {Collective::all_reduce, 2, 0, 8}, 1);
  const Rank peer = 1;
  b.step(0, {}, {Buffer::input, 1, 3, 1}, {Buffer::output, 1, 3, 2}, {&peer, 1});
  const Schedule schedule = std::move(b).build();
  CHECK(describe(schedule, schedule.programs[0].steps[0]) == "cs in[1..3] =out[1..5 by 2] >1");
}
