// Every collective of NCCL's interface by gyre alone, out of place and in place, beside what it must give.
#include <fmt/format.h>

#include <cstdint>

#include "test/catch.h"
#include "test/plugin/nccl_every_collective.h"

using namespace gyre::test;
using collectives::every_collective;

TEST_CASE("nccl: every collective gives what it must") {
  const int ranks = GENERATE(1, 2, 3, 5);
  const bool in_place = GENERATE(false, true);
  CHECK(run_nccl(ranks, [&](ncclComm_t comm, int rank) {
          for (const size_t n : {size_t{0}, size_t{1}, size_t{17}, size_t{5000}}) {
            if (auto wrong = every_collective(comm, rank, ranks, n, in_place); !wrong.empty())
              return fmt::format("{} elements: {}", n, wrong);
          }
          return std::string();
        }) == "");
}

TEST_CASE("nccl: every type and operation is NCCL's") {
  const auto type = static_cast<ncclDataType_t>(GENERATE(range(0, 12)));
  const auto op = static_cast<ncclRedOp_t>(GENERATE(range(0, 5)));
  // 2 and 4 as each type has them, and of both the sum, the product, the larger, the smaller, the average.
  const std::array<double, 5> results{6, 8, 4, 2, 3};
  const auto bits = [&](double value) -> uint64_t {
    const auto whole = static_cast<uint64_t>(value);
    const auto real = __builtin_bit_cast(uint32_t, static_cast<float>(value));
    switch (type) {
      case ncclFloat16:
        return (real >> 13 & 0x3ff) | ((real >> 23) - 127 + 15) << 10;
      case ncclFloat32:
        return real;
      case ncclFloat64:
        return __builtin_bit_cast(uint64_t, value);
      case ncclBfloat16:
        return real >> 16;
      case ncclFloat8e4m3:
        return (real >> 20 & 7) | ((real >> 23) - 127 + 7) << 3;
      case ncclFloat8e5m2:
        return (real >> 21 & 3) | ((real >> 23) - 127 + 15) << 2;
      default:
        return whole;
    }
  };
  CHECK(run_nccl(2, [&](ncclComm_t comm, int rank) -> std::string {
          uint64_t data = bits(rank == 0 ? 2 : 4);
          NCCL_OK(ncclAllReduce(&data, &data, 1, type, op, comm, nullptr));
          const uint64_t expected = bits(results[static_cast<size_t>(op)]);
          return data == expected ? "" : fmt::format("{:#x} in place of {:#x}", data, expected);
        }) == "");
}

TEST_CASE("nccl: an average of floats is of the scaled inputs, of integers the divided sum") {
  CHECK(run_nccl(3, [](ncclComm_t comm, int rank) -> std::string {
          float real = 3.0F * static_cast<float>(rank + 1);
          int32_t whole = rank == 0 ? -8 : 0;
          NCCL_OK(ncclAllReduce(&real, &real, 1, ncclFloat32, ncclAvg, comm, nullptr));
          NCCL_OK(ncclAllReduce(&whole, &whole, 1, ncclInt32, ncclAvg, comm, nullptr));
          return real > 5.99F && real < 6.01F && whole == -2 ? "" : fmt::format("{} and {}", real, whole);
        }) == "");
}

TEST_CASE("nccl: memory of ncclMemAlloc is reduced in place, and freed once") {
  CHECK(run_nccl(4, [](ncclComm_t comm, int rank) -> std::string {
          constexpr size_t count = 100000;
          void* memory = nullptr;
          void* registered = &memory;
          NCCL_OK(ncclMemAlloc(&memory, count * sizeof(int32_t)));
          NCCL_OK(ncclCommRegister(comm, memory, count * sizeof(int32_t), &registered));
          auto* data = static_cast<int32_t*>(memory);
          std::fill(data, data + count, rank);
          NCCL_OK(ncclAllReduce(data, data, count, ncclInt32, ncclSum, comm, nullptr));
          if (std::any_of(data, data + count, [](int32_t x) { return x != 6; })) return "a wrong sum";
          NCCL_OK(ncclCommDeregister(comm, registered));
          NCCL_OK(ncclMemFree(memory));
          NCCL_GIVES(ncclInvalidArgument, ncclMemFree(memory));
          NCCL_OK(ncclMemFree(nullptr));
          return {};
        }) == "");
}
