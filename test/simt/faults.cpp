// Runs a sample kernel with a fault: faults NAME. Ends with 0 where the sums came out right all the same, as most do.
#include <cstdio>
#include <string_view>

#include "test/simt/packet_sample.h"
#include "test/simt/sample.h"

using namespace gyre::simt;

int main(int argc, char** argv) {
  const struct {
    std::string_view name;
    bool (*run)(const Grid&);
  } all[] = {{"none", sums_are_right<Fault::none>},
             {"no_barrier_before", sums_are_right<Fault::no_barrier_before>},
             {"no_barrier_after", sums_are_right<Fault::no_barrier_after>},
             {"relaxed_flag", sums_are_right<Fault::relaxed_flag>},
             {"one_address", sums_are_right<Fault::one_address>},
             {"packets", packets_are_right<PacketFault::none>},
             {"packets_flag_first", packets_are_right<PacketFault::flag_first>},
             {"packets_one_buffer", packets_are_right<PacketFault::one_buffer>}};
  for (const auto& [name, run] : all) {
    if (argc != 2 || name != argv[1]) continue;
    const bool right = run({2, 64, 0});
    std::printf("sums: %s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
  }
  std::fprintf(stderr, "usage: faults NAME, one of:\n");
  for (const auto& fault : all) std::fprintf(stderr, "  %s\n", fault.name.data());
  return 2;
}
