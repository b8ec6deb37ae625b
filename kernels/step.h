// Steps of a schedule as kernels: which there are, and what one is told. A kernel reduces its sources, element by element and in order, to
// its destinations. Plain data, without CUDA: the same bytes serve a launch, a node of a graph, or the list of work of a kernel that stays.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gyre::kernels {

/// What is known only when a kernel may begin: the host writes it before it opens the gate. Every source is a part of its own, multiplied
/// by its scalar where the operation multiplies: `own`, not the first, in one with the addition, as the rank's own is by other kernels,
/// the others before they are added, as their ranks would have sent them. Pinned memory.
struct StepList {
  static constexpr unsigned most = 16;

  uint64_t ticket;  ///< a kernel that finds another one's does nothing
  uint32_t sources, destinations;
  uint32_t own;
  const void* source[most];
  uint64_t scalar[most];
  void* destination[most];  ///< as StepArgs'
};

struct StepArgs {
  const void* sources[3];  ///< the first is the rank's own part, the only one that a pre-multiplied sum multiplies
  void* destinations[2];   ///< may equal a source exactly, else overlap none
  const StepList* list;    ///< of many_to_many, in place of these
  size_t count;            ///< elements
  uint64_t scalar;         ///< bits of the element that multiplies; of an average of integers, by how many ranks it is divided; with a
                           ///< list: the ticket that this must have
};
static_assert(sizeof(StepArgs) == 64 && std::is_trivially_copyable_v<StepArgs>);

/// As many as StepArgs::list has.
inline constexpr int many = 0;

// X(shape, sources, destinations, packs): packs are what a thread loads of each source before it uses the first. As many as 64 registers
// hold: two blocks then fit a multiprocessor, and have at least 48 KiB on their way, twice what HBM3 at its fastest needs.
#define GYRE_STEP_SHAPES(X) \
  X(one_to_one, 1, 1, 4)    \
  X(one_to_two, 1, 2, 4) X(two_to_one, 2, 1, 4) X(two_to_two, 2, 2, 3) X(three_to_one, 3, 1, 2) X(many_to_many, many, many, 3)

#define GYRE_SHAPE(shape, sources, destinations, packs) shape,
enum class Shape : uint8_t { GYRE_STEP_SHAPES(GYRE_SHAPE) };
#undef GYRE_SHAPE
inline constexpr size_t shape_count = static_cast<size_t>(Shape::many_to_many) + 1;

/// Threads of a block, at most: with 64 registers each, two blocks fit a multiprocessor.
inline constexpr unsigned step_threads = 512;
inline constexpr int warp_threads = 32;

}  // namespace gyre::kernels
