#include "perf/about_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <ctime>

#include "base/processor.h"
#include "base/version.h"
#include "kernels/reduce_host.h"
#include "perf/commit.h"
#include "transport/transport.h"

namespace gyre::perf {
namespace {

nlohmann::json machine() {
  utsname system{};
  uname(&system);
  const Processors processors = processors_of_host();
  return {{"host", system.nodename},        {"machine", system.machine}, {"processor", processors.model},
          {"processors", processors.count}, {"kernel", system.release},  {"isa", kernels::isa()}};
}

nlohmann::json versions() {
#ifdef __clang__
  const auto compiler = fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  const auto compiler = fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
  const std::string ucx = transport::ucx_version();
  return {{"compiler", compiler},
          {"libc", fmt::format("glibc {}", gnu_get_libc_version())},
          {"ucx", ucx.empty() ? nlohmann::json() : nlohmann::json(ucx)}};
}

nlohmann::json set_options(const Config& config) {
  nlohmann::json all = nlohmann::json::object();
  config.each([&](const auto& option) {
    if (option.origin != "default") all[std::string(option.name)] = option.value;
  });
  return all;
}

}  // namespace

std::string date_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

nlohmann::json about_run(const std::string& command, const Config& config) {
  return {{"gyre", version},      {"commit", commit},       {"command", command},           {"date", date_now()},
          {"machine", machine()}, {"versions", versions()}, {"config", set_options(config)}};
}

}  // namespace gyre::perf
