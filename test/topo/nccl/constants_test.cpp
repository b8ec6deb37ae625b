#include "topo/nccl/constants.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "test/catch.h"

using namespace gyre;
using namespace gyre::topo::nccl;

namespace {

nlohmann::json compiled_in() { return nlohmann::json::parse(std::ifstream(GYRE_SOURCE_DIR "/topo/nccl/constants.json")); }

/// The error of the file once a value in it is another.
std::string once_changed(const char* pointer, const nlohmann::json& value) {
  nlohmann::json file = compiled_in();
  file[nlohmann::json::json_pointer(pointer)] = value;
  const auto parsed = parse_model_constants(file.dump(), "mine.json");
  return parsed ? "" : parsed.error().what;
}

}  // namespace

TEST_CASE("the constants compiled in are those of constants.json, in seconds and bytes") {
  const auto constants = model_constants_of("");
  REQUIRE(constants);
  const Machine dgx = *constants->machine("dgx_h100");
  CHECK(dgx.gpus == 8);
  CHECK(dgx.generation == 2);
  CHECK(dgx.network_rate == Approx(400e9));
  CHECK(dgx.network_latency == Approx(5e-6));
  CHECK(dgx.channels(1).count == 12);
  CHECK(dgx.channels(2).count == 8);
  CHECK(constants->lines[1].data_bytes == 120);
  CHECK(constants->published.tree.network[2] == Approx(14e-6));
  CHECK(constants->published.tree_rate[2][1] == Approx(41.4e9));
  CHECK(constants->machine("dgx_h10").error().what ==
        "there are no constants of a machine 'dgx_h10': must be one of cloud_t4, dgx_h100, pcie_4090; did you mean dgx_h100?");
  const nlohmann::json file = compiled_in();
  for (const auto& [name, machine] : file["machines"].items()) CHECK(!machine["origin"].get<std::string>().empty());
}

TEST_CASE("a wrong constant is an error that says where it is and what is right") {
  CHECK(once_changed("/protocols/ll/hop_us", 1).empty());
  CHECK(once_changed("/protocols/ll/hop_us", "fast") == R"(mine.json: protocols.ll.hop_us = "fast": must be a number)");
  CHECK(once_changed("/protocols/ll/data_bytes", 0) == "mine.json: protocols.ll.data_bytes = 0: must be more than 0");
  CHECK(once_changed("/machines/dgx_h100/gpus", 0) == "mine.json: machines.dgx_h100.gpus = 0: must be 1 or more");
  CHECK(once_changed("/machines/dgx_h100/cpu", "arm") == R"(mine.json: machines.dgx_h100.cpu = "arm": must be one of intel, amd)");
  CHECK(once_changed("/machines/dgx_h100/channels/nodes/run", 1.5) ==
        "mine.json: machines.dgx_h100.channels.nodes.run = 1.5: must be a whole number");
  CHECK(once_changed("/machines/dgx_h100/nvlinks", 18).find("machines.dgx_h100.nvlinks = 18: unknown") != std::string::npos);
  CHECK(once_changed("/published/tree/base_us", {1, 2}) == "mine.json: published.tree.base_us = [1,2]: must be 3 numbers from 0 to 1e9");
  CHECK(once_changed("/published/ll_gb_per_s/hopper", {1, -2, 3}).find("must be 3 numbers") != std::string::npos);
  CHECK(parse_model_constants("{", "mine.json").error().what == "mine.json: is not JSON: line 1, column 2");
  CHECK(model_constants_of("/none.json").error().what.find("/none.json") != std::string::npos);
}
