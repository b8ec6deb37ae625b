#include "base/processor.h"

#include "test/catch.h"
#include "test/folder.h"

using namespace gyre;
using gyre::test::Folder;

TEST_CASE("an instance of a GPU is of the GPU's model, and a model that begins alike is another") {
  const std::string gpu = "NVIDIA Abacus 80GB";
  CHECK(is_of_model(gpu, gpu));
  CHECK(is_of_model(gpu + " MIG 1g.10gb", gpu));
  CHECK(is_of_model(gpu + " MIG 1c.2g.20gb+me", gpu));
  CHECK_FALSE(is_of_model(gpu + " HBM3", gpu));
  CHECK_FALSE(is_of_model(gpu + "MIG 1g.10gb", gpu));
  CHECK_FALSE(is_of_model(gpu, gpu + " MIG 1g.10gb"));
  CHECK_FALSE(is_of_model("NVIDIA Loom MIG 1g.10gb", gpu));
}

TEST_CASE("a host goes by the models of its GPUs, each once, and then by its processors'") {
  const Folder root;
  const std::string processors = processors_of_host().model;
  CHECK(models_of_host(root.path()) == std::vector{processors});
  const auto gpu = [&](const std::string& address, const char* information) {
    const auto folder = root.path() / "proc/driver/nvidia/gpus" / address;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "information") << information;
  };
  gpu("0000:0f:00.0", "Model: \t\t NVIDIA Abacus 80GB\nIRQ:   \t\t 11\n");
  gpu("0000:1f:00.0", "IRQ: 12\nModel: NVIDIA Abacus 80GB\n");
  gpu("0000:2f:00.0", "Model:\n");
  gpu("0000:3f:00.0", "Model: NVIDIA Loom\n");
  std::filesystem::create_directories(root.path() / "proc/driver/nvidia/gpus/0000:4f:00.0");
  CHECK(models_of_host(root.path()) == std::vector<std::string>{"NVIDIA Abacus 80GB", "NVIDIA Loom", processors});
}
