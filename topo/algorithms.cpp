#include "topo/algorithms.h"

#include <array>

namespace gyre::topo {
namespace {

constexpr std::array<Family, 3> all{{{"ring", ring}, {"naive", naive}, {"one_shot", one_shot}}};

}  // namespace

std::span<const Family> families() { return all; }

const Family* family_named(std::string_view name) {
  for (const Family& family : all) {
    if (family.name == name) return &family;
  }
  return nullptr;
}

}  // namespace gyre::topo
