// A folder through which ranks hand each other what NCCL's bootstrap would carry: handles, and the word that all have arrived. Files, so
// that ranks may be started by hand, in network namespaces of their own too. Nothing here waits: who waits asks again.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"

namespace gyre::test {

class Mailbox {
 public:
  explicit Mailbox(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Whoever takes it sees all of it or nothing.
  Status post(const std::string& name, const std::string& text) const;
  /// Empty where it is not there yet.
  std::optional<std::string> read(const std::string& name) const;
  void remove(const std::string& name) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace gyre::test
