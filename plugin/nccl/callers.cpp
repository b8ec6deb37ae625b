#include "plugin/nccl/callers.h"

#include <dlfcn.h>
#include <link.h>

#include <functional>

namespace gyre::plugin::nccl {

bool Caller::has(const void* address) const {
  return std::less_equal<>()(begin, address) && std::less<>()(address, end);  // of different objects
}

#ifdef DLFO_EH_SEGMENT_TYPE
// glibc has it from 2.35 on: without a lock.
Caller caller_at(const void* address) noexcept {
  dl_find_object found{};
  if (::_dl_find_object(const_cast<void*>(address), &found) != 0) return {};
  return {found.dlfo_map_start, found.dlfo_map_end, found.dlfo_link_map->l_ld, found.dlfo_link_map->l_name};
}
#else
namespace {

struct CallerSearch {
  const void* address;
  Caller found;
};

int look_for_caller(dl_phdr_info* object, size_t /*bytes*/, void* wanted) {
  auto& search = *static_cast<CallerSearch*>(wanted);
  Caller here;
  here.file = object->dlpi_name;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    const auto* begin = reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr);
    if (part.p_type == PT_DYNAMIC) here.dynamic = begin;
    if (part.p_type != PT_LOAD) continue;  // these come in the order of their addresses
    if (here.begin == nullptr) here.begin = begin;
    here.end = begin + part.p_memsz;
  }
  if (!here.has(search.address)) return 0;
  search.found = here;
  return 1;
}

}  // namespace

Caller caller_at(const void* address) noexcept {
  CallerSearch search{address, {}};
  ::dl_iterate_phdr(look_for_caller, &search);
  return search.found;
}
#endif

}  // namespace gyre::plugin::nccl
