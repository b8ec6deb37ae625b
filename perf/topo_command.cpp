#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "perf/commands.h"
#include "perf/topology_channels.h"
#include "perf/topology_svg.h"
#include "perf/topology_text.h"
#include "topo/discover.h"
#include "topo/nccl_xml.h"
#include "topo/this_machine.h"

namespace gyre::perf {
namespace {

struct Source {
  topo::Topology topology;
  std::string name;
};

Result<Source> from_file(const std::string& path, size_t host) {
  auto hosts = GYRE_TRY(topo::read_nccl_file("--xml", path));
  if (host > hosts.size())
    return Error{Code::invalid_argument,
                 fmt::format("--host {}: {} has {} host{}", host, path, hosts.size(), hosts.size() == 1 ? "" : "s")};
  return Source{std::move(hosts[host - 1]), hosts.size() == 1 ? path : fmt::format("{}, host {} of {} (--host)", path, host, hosts.size())};
}

Result<Source> source_of(const TopoCommand& command) {
  if (!command.xml.empty()) return from_file(command.xml, command.host);
  if (!command.root.empty()) return Source{GYRE_TRY(topo::discover(command.root)), command.root};
  const char* const file = std::getenv("NCCL_TOPO_FILE");
  const std::string by = file != nullptr && *file != '\0' ? fmt::format(", NCCL_TOPO_FILE {}", file) : "";
  return Source{GYRE_TRY(topo::read_this_machine()), "this machine" + by};
}

// One would overwrite the other.
Status differ(std::string_view named, const std::string& path, std::string_view other_named, const std::string& other) {
  std::error_code failed;  // a path that leads nowhere is complained of where it is opened
  const auto whole = [&](const std::string& each) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(each, failed), failed);
  };
  if (path.empty() || other.empty() || whole(path) != whole(other) || failed) return {};
  return Error{Code::invalid_argument, fmt::format("{} {}: the same file as {}", named, path, other_named)};
}

Status run(const TopoCommand& command) {
  GYRE_TRY(differ("--svg", command.svg, "--dump", command.dump));
  GYRE_TRY(differ("--svg", command.svg, "--xml", command.xml));
  const Source source = GYRE_TRY(source_of(command));
  const topo::Topology& topology = source.topology;
  const auto counted = [](size_t number, std::string_view noun) { return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s"); };
  const std::string title = fmt::format("{}: {}, {}, {}", source.name, counted(topology.all<topo::Numa>().size(), "NUMA node"),
                                        counted(topology.all<topo::Gpu>().size(), "GPU"), counted(topology.all<topo::Nic>().size(), "NIC"));
  if (!command.dump.empty()) GYRE_TRY(write_file("--dump", command.dump, topo::write_nccl_xml(topology)));
  if (!command.svg.empty()) GYRE_TRY(write_file("--svg", command.svg, topology_svg(topology, title, command.nodes)));
  fmt::print("{}\n\n{}", title, topology_tree(topology));
  const std::string table = topology_table(topology);
  if (!table.empty()) fmt::print("\n{}\n{}", table, topology_channels(topology, command.nodes));
  if (table.empty() && command.nodes > 1) fmt::print("\n--nodes {}: no GPUs, so no channels\n", command.nodes);
  return {};
}

}  // namespace

int show_topology(const TopoCommand& command, const Config&) {
  const Status status = run(command);
  return status ? 0 : complain(status.error());
}

}  // namespace gyre::perf
