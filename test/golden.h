// Texts that are compared with files of test/golden, and are written there when UPDATE_GOLDEN is set.
#pragma once
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace gyre::test {

/// Empty: `text` is what test/golden/`name` has; else what is wrong and how to mend it.
inline std::string golden_difference(const std::string& name, const std::string& text) {
  const std::string path = std::string(GYRE_SOURCE_DIR "/test/golden/") + name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  const std::string kept{std::istreambuf_iterator<char>(file), {}};
  if (file && kept == text) return {};
  const std::string mend = "; if the new one is right, run UPDATE_GOLDEN=1 build/test/test-schedule and look at the difference";
  size_t line = 1;
  for (size_t i = 0; i < kept.size() && i < text.size() && kept[i] == text[i]; ++i) line += kept[i] == '\n' ? 1 : 0;
  return "test/golden/" + name + " differs from line " + std::to_string(line) + " on" + mend;
}

}  // namespace gyre::test
