// What NCCL is given of a call beside it, function by function, and that what gyre takes over is the collective that was called. NCCL is
// one that only says what it hears (recording_nccl.cpp).
#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <regex>
#include <tuple>
#include <utility>

#include "plugin/nccl/wrap_real.h"
#include "test/catch.h"
#include "test/plugin/fake_nccl_hooks.h"
#include "test/plugin/nccl_every_collective.h"
#include "test/plugin/recorded_call.h"

using namespace gyre;
using test::run_nccl;

namespace {

/// What NCCL has heard of the calling thread.
std::vector<std::string>& heard() {
  thread_local std::vector<std::string> calls;
  return calls;
}

/// What ranks that are made from now on go by: all collectives, from so many bytes on.
void be_beside(const std::string& least) {
  void* const nccl = ::dlopen(std::getenv("GYRE_NCCL"), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(nccl != nullptr);
  reinterpret_cast<FakeNcclHooksOf*>(::dlsym(nccl, "fake_nccl_hooks"))()->say = [](const char* call) { heard().emplace_back(call); };
  int version = 0;
  ncclGetVersion(&version);  // the first call chooses who answers
  const char* all = "GYRE_COLLECTIVES=all_reduce,reduce_scatter,reduce,broadcast,all_gather,alltoall,gather,scatter";
  plugin::nccl::wrap::set_up(plugin::nccl::wrap::real(),
                             test::configured({all, "GYRE_MIN_BYTES=" + least, "GYRE_DEVICE=host", "GYRE_TIMEOUT=60"}));
}

/// Of one call: numbers and pointers are other ones at each place, so that two that are mistaken for each other are seen.
class Arguments {
 public:
  explicit Arguments(ncclComm_t comm) : comm_(comm) {}

  template <class T>
  T next() {
    const size_t place = place_++;
    std::byte* const page = pages_.at(place).data();
    if constexpr (std::is_same_v<T, ncclConfig_t*>) return new (page) ncclConfig_t(test::nccl_config());
    if constexpr (std::is_same_v<T, ncclComm_t>) return comm_;
    if constexpr (std::is_pointer_v<T>) return reinterpret_cast<T>(page);
    if constexpr (std::is_enum_v<T>) return static_cast<T>(1);
    if constexpr (std::is_integral_v<T>) return static_cast<T>(place);
    T value{};
    std::memset(&value, static_cast<int>(place), 1);
    return value;
  }

 private:
  const ncclComm_t comm_;
  size_t place_ = 0;
  alignas(std::max_align_t) std::array<std::array<std::byte, 4096>, 16> pages_{};  // that pointers lead to
};

template <class R, class... A>
std::string passed_on(const char* name, R (*function)(A...), ncclComm_t comm) {
  Arguments arguments(comm);
  const std::tuple<A...> given{arguments.next<A>()...};
  heard().clear();
  std::apply(function, given);
  const auto expected = std::apply([&](const A&... all) { return test::recorded_call(name, all...); }, given);
  const auto is_this = [&](const std::string& call) { return call.substr(0, call.find(' ')) == name; };
  const auto first = std::ranges::find_if(heard(), is_this);
  if (std::ranges::count_if(heard(), is_this) != 1)
    return fmt::format("{} has not come to NCCL once, of {}", name, fmt::join(heard(), ", "));
  return *first == expected ? "" : fmt::format("{} in place of {}", *first, expected);
}

struct Function {
  const char *name, *parameters, *arguments;
  std::string (*passed_on)(ncclComm_t);
};
#define TEST_FUNCTION(result, name, parameters, arguments) \
  {#name, #parameters, #arguments, [](ncclComm_t comm) { return passed_on(#name, &name, comm); }},
const Function functions[] = {NCCL_FUNCTIONS(TEST_FUNCTION)};
#undef TEST_FUNCTION

std::string last_words(const std::string& list) {
  static const std::regex last(R"((\w+)\s*[,)])");
  std::string words;
  for (std::sregex_iterator found(list.begin(), list.end(), last), end; found != end; ++found) words += (*found)[1].str() + " ";
  return words == "void " ? "" : words;
}

}  // namespace

TEST_CASE("forwarding: the names of arguments are those of the parameters, in their order") {
  for (const Function& function : functions) CHECK(last_words(function.parameters) == last_words(function.arguments));
}

TEST_CASE("forwarding: what is left to NCCL comes to it once, as it was called") {
  be_beside("1G");
  for (const Function& function : functions) {
    INFO(function.name);
    CHECK(run_nccl(2, [&](ncclComm_t comm, int) { return function.passed_on(comm); }) == "");
  }
}

TEST_CASE("forwarding: every collective that gyre takes over is the one that was called") {
  be_beside("0");
  const bool in_place = GENERATE(false, true);
  CHECK(run_nccl(3, [&](ncclComm_t comm, int rank) {
          heard().clear();
          for (const size_t n : {size_t{1}, size_t{17}, size_t{5000}}) {
            if (auto wrong = test::collectives::every_collective(comm, rank, 3, n, in_place); !wrong.empty())
              return fmt::format("{} elements: {}", n, wrong);
          }
          return heard().empty() ? std::string() : fmt::format("to NCCL: {}", fmt::join(heard(), ", "));
        }) == "");
}
