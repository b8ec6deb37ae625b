#include "test/plugin/mailbox.h"

#include <cerrno>
#include <fstream>
#include <sstream>

#include "base/text.h"

namespace gyre::test {

Status Mailbox::post(const std::string& name, const std::string& text) const {
  const std::filesystem::path file = folder_ / name;
  const std::filesystem::path draft = folder_ / (name + ".draft");
  if (!(std::ofstream(draft, std::ios::binary) << text).flush()) return Error{Code::system, draft.string() + ": " + errno_text(errno)};
  std::error_code failed;
  std::filesystem::rename(draft, file, failed);
  if (failed) return Error{Code::system, file.string() + ": " + failed.message()};
  return {};
}

std::optional<std::string> Mailbox::read(const std::string& name) const {
  std::ifstream file(folder_ / name, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

void Mailbox::remove(const std::string& name) const {
  std::error_code absent;
  std::filesystem::remove(folder_ / name, absent);
}

}  // namespace gyre::test
