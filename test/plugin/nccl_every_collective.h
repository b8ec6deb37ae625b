// Every collective of NCCL's interface, out of place or in place, beside what it must give.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "test/plugin/nccl_ranks.h"

namespace gyre::test::collectives {

inline int64_t element(int rank, size_t i) { return static_cast<int64_t>((static_cast<size_t>(rank) + 1) * 1000 + i); }

inline int64_t total(int ranks, size_t i) {
  int64_t sum = 0;
  for (int r = 0; r < ranks; ++r) sum += element(r, i);
  return sum;
}

/// Of calls on host memory, which are done when they return.
struct NoStream {
  operator cudaStream_t() const { return nullptr; }
  bool done() const { return true; }
};

/// What the stream has done.
template <class Stream, class Expected>
std::string compare(Stream& stream, const char* what, const int64_t* data, size_t count, Expected expected) {
  if (!stream.done()) return fmt::format("{}: its stream does not end", what);
  for (size_t i = 0; i < count; ++i) {
    if (data[i] != expected(i)) return fmt::format("{}, element {}: {} in place of {}", what, i, data[i], expected(i));
  }
  return {};
}

/// All of them, with `n` elements a block.
template <class Data = std::vector<int64_t>, class Stream = NoStream>
std::string every_collective(ncclComm_t comm, int rank, int ranks, size_t n, bool in_place) {
  const auto all = n * static_cast<size_t>(ranks), own = n * static_cast<size_t>(rank);
  const int root = ranks - 1;
  const bool at_root = rank == root;
  Data in(all + 1, 0), out(all + 1, 0);
  Stream stream;
  const auto fresh = [&] {
    for (size_t i = 0; i < all; ++i) in.data()[i] = element(rank, i);
    std::fill_n(out.data(), all + 1, -1);
  };
  const auto from = [&](int r) { return [r](size_t i) { return element(r, i); }; };
  const auto gathered = [&](size_t i) { return element(static_cast<int>(i / n), i % n); };
  const auto sum = [&](size_t i) { return total(ranks, i); };
  std::string wrong;

  fresh();
  int64_t* to = in_place ? in.data() : out.data();
  NCCL_OK(ncclAllReduce(in.data(), to, n, ncclInt64, ncclSum, comm, stream));
  if (wrong = compare(stream, "all-reduce", to, n, sum); !wrong.empty()) return wrong;

  fresh();
  NCCL_OK(ncclReduce(in.data(), at_root ? to : nullptr, n, ncclInt64, ncclSum, root, comm, stream));
  if (wrong = compare(stream, "reduce", to, at_root ? n : 0, sum); !wrong.empty()) return wrong;

  fresh();
  NCCL_OK(ncclBroadcast(at_root ? in.data() : nullptr, to, n, ncclInt64, root, comm, stream));
  if (wrong = compare(stream, "broadcast", to, n, from(root)); !wrong.empty()) return wrong;

  fresh();
  NCCL_OK(ncclBcast(in.data(), n, ncclInt64, ranks / 2, comm, stream));
  if (wrong = compare(stream, "bcast", in.data(), n, from(ranks / 2)); !wrong.empty()) return wrong;

  fresh();
  int64_t* block = in_place ? in.data() + own : out.data();
  NCCL_OK(ncclReduceScatter(in.data(), block, n, ncclInt64, ncclSum, comm, stream));
  if (wrong = compare(stream, "reduce-scatter", block, n, [&](size_t i) { return total(ranks, own + i); }); !wrong.empty()) return wrong;

  fresh();
  if (in_place) std::copy_n(in.data(), n, out.data() + own);
  NCCL_OK(ncclAllGather(in_place ? out.data() + own : in.data(), out.data(), n, ncclInt64, comm, stream));
  if (wrong = compare(stream, "all-gather", out.data(), all, gathered); !wrong.empty()) return wrong;

  fresh();
  NCCL_OK(ncclGather(in.data(), at_root ? out.data() : nullptr, n, ncclInt64, root, comm, stream));
  if (wrong = compare(stream, "gather", out.data(), at_root ? all : 0, gathered); !wrong.empty()) return wrong;

  fresh();
  NCCL_OK(ncclScatter(at_root ? in.data() : nullptr, out.data(), n, ncclInt64, root, comm, stream));
  if (wrong = compare(stream, "scatter", out.data(), n, [&](size_t i) { return element(root, own + i); }); !wrong.empty()) return wrong;

  fresh();
  NCCL_OK(ncclAlltoAll(in.data(), out.data(), n, ncclInt64, comm, stream));
  wrong = compare(stream, "all-to-all", out.data(), all, [&](size_t i) { return element(static_cast<int>(i / n), own + i % n); });
  return !wrong.empty() || out.data()[all] == -1 ? wrong : "all-to-all wrote behind its output";
}

}  // namespace gyre::test::collectives
