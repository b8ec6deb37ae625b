// UCX as opened at run time, and as shared with others in the process. Which UCX is refused is test/system/without_ucx.py's.
#include "transport/ucx_api.h"

#include <dlfcn.h>

#include <string>
#include <vector>

#include "base/log.h"
#include "test/catch.h"
#include "transport/ucx.h"
#include "transport/ucx_functions.h"

using namespace gyre;
using namespace gyre::transport;
using transport::ucx::load_ucx;
using transport::ucx::load_ucx_devices;

namespace {

std::vector<std::string> gyres, theirs;

void gyres_sink(log::Level, std::string_view line) { gyres.emplace_back(line); }

ucs_log_func_rc_t take_as_theirs(const char*, unsigned, const char*, ucs_log_level_t level, const ucs_log_component_config_t*,
                                 const char* message, va_list) {
  if (level > UCS_LOG_LEVEL_WARN) return UCS_LOG_FUNC_RC_CONTINUE;
  theirs.emplace_back(message);
  return UCS_LOG_FUNC_RC_STOP;
}

/// Another user of the same UCX in this process logs a line through it; who has got it.
std::string logged(const char* line) {
  void* library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  auto* const dispatch = reinterpret_cast<decltype(&ucs_log_dispatch)>(dlsym(library, "ucs_log_dispatch"));
  ucs_log_component_config_t component{};
  component.log_level = UCS_LOG_LEVEL_WARN;
  gyres.clear();
  theirs.clear();
  dispatch("file", 1, "function", UCS_LOG_LEVEL_WARN, &component, "%s", line);
  dlclose(library);
  return (gyres.empty() ? "" : "gyre ") + std::string(theirs.empty() ? "" : "they");
}

struct Sink {
  Sink() {
    log::set_sink(gyres_sink);
    log::set_level(log::Level::info);
  }
  ~Sink() { log::set_sink(nullptr); }
};

}  // namespace

TEST_CASE("ucx api: a function that was not loaded refuses") {
  // The first to ask: nothing in this program asks for networks before.
  uct_component_h* components = nullptr;
  unsigned count = 0;
  CHECK(uct_query_components(&components, &count) == UCS_ERR_UNSUPPORTED);
  REQUIRE(load_ucx());
  CHECK(uct_query_components(&components, &count) == UCS_ERR_UNSUPPORTED);
  CHECK(std::string(ucs_status_string(UCS_OK)) == "Success");
}

TEST_CASE("ucx api: networks are asked for only in the version of the headers") {
  REQUIRE(load_ucx());
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  const auto loaded = load_ucx_devices();
  CHECK(bool(loaded) == (major == UCP_API_MAJOR && minor == UCP_API_MINOR));
  if (!loaded) {
    CHECK(loaded.error().what.find("gyre was compiled for") != std::string::npos);
    return;
  }
  uct_component_h* components = nullptr;
  unsigned count = 0;
  REQUIRE(uct_query_components(&components, &count) == UCS_OK);
  CHECK(count > 0);
  uct_release_component_list(components);
}

TEST_CASE("ucx api: UCX's lines are gyre's while gyre has a context, and then those of another user again") {
  Sink sink;
  REQUIRE(load_ucx());
  const auto before = ucs_log_num_handlers();
  ucs_log_push_handler(take_as_theirs);
  CHECK(logged("before") == "they");
  {
    auto first = *open_ucx_worker({});
    auto second = *open_ucx_worker({});
    CHECK(ucs_log_num_handlers() == before + 2);
    CHECK(logged("with two") == "gyre ");
    CHECK(gyres.at(0) == "UCX: with two");
    first.reset();
    CHECK(logged("with one") == "gyre ");
  }
  CHECK(logged("after") == "they");
  CHECK(ucs_log_num_handlers() == before + 1);
  ucs_log_pop_handler();
}

TEST_CASE("ucx api: a handler that another user puts above gyre's stays theirs") {
  Sink sink;
  REQUIRE(load_ucx());
  const auto before = ucs_log_num_handlers();
  auto worker = *open_ucx_worker({});
  ucs_log_push_handler(take_as_theirs);
  worker.reset();
  CHECK(logged("above") == "they");
  CHECK(ucs_log_num_handlers() == before + 2);  // gyre's is under theirs
  ucs_log_pop_handler();
  CHECK(logged("alone") == "");  // UCX's own writes it to stdout
  worker = *open_ucx_worker({});
  CHECK(ucs_log_num_handlers() == before + 1);
  CHECK(logged("again") == "gyre ");
  worker.reset();
  CHECK(ucs_log_num_handlers() == before);
}
