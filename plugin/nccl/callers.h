// The object that a call comes from. An NCCL calls some of its own interface, by gyre's names where gyre was loaded first, and such a call
// is its own to answer, whichever thread makes it: what it has made gyre and other NCCLs don't know.
#pragma once

namespace gyre::plugin::nccl {

/// An object while it is loaded: another one that comes to its place later differs in something.
struct Caller {
  const void* begin = nullptr;  ///< null: in none, as code that is made at run time
  const void* end = nullptr;
  const void* dynamic = nullptr;  ///< its table for the loader
  const char* file = "";          ///< while it is loaded; empty: the program itself

  bool has(const void* address) const;
  bool operator==(const Caller& other) const { return begin == other.begin && end == other.end && dynamic == other.dynamic; }
};

/// What has this address.
Caller caller_at(const void* address) noexcept;

}  // namespace gyre::plugin::nccl
