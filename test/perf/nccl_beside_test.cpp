#include "perf/nccl_beside.h"

#include <fmt/format.h>

#include <cstdlib>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::perf;

namespace {

std::string said(uint64_t bytes, std::string_view by, std::string_view collective = "all_reduce") {
  return fmt::format("[1,0]<stderr>:gyre: info: rank 0 of 4: {} of about {} bytes by {}\r\n", collective, bytes, by);
}

/// Empty: gyre ran all of them.
std::string left_out(std::string_view log, const std::vector<uint64_t>& sizes, Collective collective = Collective::all_reduce) {
  std::map<uint64_t, double> times;
  for (const uint64_t size : sizes) times[size] = 1;
  const Status status = gyre_ran(log, collective, 4, times);
  return status ? "" : status.error().what;
}

}  // namespace

TEST_CASE("gyre's environment loads its library first, takes the one collective of any size, and is NCCL's own else") {
  const char* before = std::getenv("LD_PRELOAD");
  const std::string restored = before == nullptr ? "" : before;
  ::setenv("LD_PRELOAD", "/lib/first.so:/lib/second.so", 1);
  const Variables beside = beside_variables("/lib/libgyre-nccl.so", Collective::all_gather, true);
  CHECK(beside.at("LD_PRELOAD") == "/lib/libgyre-nccl.so:/lib/first.so:/lib/second.so");
  ::unsetenv("LD_PRELOAD");
  CHECK(beside_variables("/lib/libgyre-nccl.so", Collective::all_gather, true).at("LD_PRELOAD") == "/lib/libgyre-nccl.so");
  if (before != nullptr) ::setenv("LD_PRELOAD", restored.c_str(), 1);
  CHECK(beside.at("GYRE_COLLECTIVES") == "all_gather");
  CHECK(beside.at("GYRE_LOG") == "info");
  for (const char* none : {"GYRE_MIN_BYTES", "GYRE_MAX_BYTES", "GYRE_NCCL", "GYRE_TUNER_FILE", "NCCL_ALGO", "NCCL_PROTO"}) {
    REQUIRE(beside.contains(none));
    CHECK_FALSE(beside.at(none).has_value());
  }
  CHECK(beside.at("NCCL_TUNER_PLUGIN") == "none");
  CHECK(beside.at("NCCL_DEBUG") == "INFO");
}

TEST_CASE("gyre has run what its log says of each size, of one between two powers of two as the first of these") {
  const std::string log = said(8, "gyre: GYRE_COLLECTIVES") + said(1000, "gyre") + said(0, "NCCL: there is nothing to do") +
                          said(64, "NCCL: GYRE_COLLECTIVES does not have it", "broadcast");
  CHECK(left_out(log, {0, 8, 12, 512, 1023}).empty());
  CHECK(left_out(log, {8, 16}) == "gyre does not say that it ran 16 bytes");
  CHECK(left_out(log + said(8, "NCCL: its stream is being captured"), {8}) ==
        "NCCL ran about 8 bytes in its place: its stream is being captured");
  CHECK(left_out(log, {64}, Collective::broadcast) == "NCCL ran about 64 bytes in its place: GYRE_COLLECTIVES does not have it");
}

TEST_CASE("sizes of all ranks are as large for the call as a rank's block") {
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
    const std::string log = said(256, "gyre", name(collective));
    CHECK(left_out(log, {0, 1024, 1300}, collective).empty());
    CHECK(left_out(log, {256}, collective) == "gyre does not say that it ran 256 bytes");
  }
}

TEST_CASE("why gyre does not say that it ran a size is the word of who knows") {
  const std::string alone = "gyre: warning: rank 0 of 4: NCCL runs all calls of this communicator: rank 2 of 4 did not join within 10 s\n";
  const std::string loader = "ERROR: ld.so: object '/lib/x.so' from LD_PRELOAD cannot be preloaded (invalid ELF header): ignored.\n";
  CHECK(left_out(alone + loader, {8}) == "gyre does not say that it ran 8 bytes: " + alone.substr(0, alone.size() - 1));
  CHECK(left_out(loader, {8}) == "gyre does not say that it ran 8 bytes: " + loader.substr(0, loader.size() - 1));
  CHECK(left_out("", {8}) == "gyre does not say that it ran 8 bytes");
}
