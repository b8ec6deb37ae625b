#include <memory>

#include "perf/cli.h"
#include "perf/cli_values.h"
#include "perf/commands.h"

namespace gyre::perf {

Subcommand add_topo(CLI::App& app) {
  const auto command = std::make_shared<TopoCommand>();  // shared with CLI11's options, which refer to it
  CLI::App* sub =
      app.add_subcommand("topo", "Show a machine: NUMA nodes, PCI switches, GPUs, NICs, which NIC is near which GPU, and channels");
  CLI::Option* root = add_path(sub, "--root", command->root, "Folder with another machine's /sys and /proc, in place of this one's");
  CLI::Option* xml = add_path(sub, "--xml", command->xml, "A topology file of NCCL's, in place of this machine")->excludes(root);
  sub->add_option("--host", command->host, "Which of its hosts, where it has several (1)")->needs(xml)->check(CLI::Range(1, 1 << 14));
  add_path(sub, "--dump", command->dump, "Write what is shown to this file, as NCCL_TOPO_FILE takes it");
  add_path(sub, "--svg", command->svg, "Draw it to this file");
  sub->add_option("--nodes", command->nodes, "Channels of a job on so many machines like it (1)")->check(CLI::Range(1, 1 << 14));
  return {sub, [command](const Invocation& given) { return show_topology(*command, given.config); }};
}

}  // namespace gyre::perf
