// What NCCL's rings and trees cost by gyre's prices, on machines with GPUs, and what NCCL itself predicts by: constants.json, compiled in,
// or a file of the same form. Each figure has its origin there; none was measured on GPUs by us.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gyre::topo::nccl {

enum class Algorithm : uint8_t { tree, ring };
enum class Protocol : uint8_t { ll, ll128, simple };
inline constexpr size_t protocols = 3;
std::string_view name(Algorithm);
std::string_view name(Protocol);

/// What a call may run; in NCCL's order, in which the first of equals wins.
struct Entry {
  Algorithm algorithm = Algorithm::tree;
  Protocol protocol = Protocol::ll;

  bool operator==(const Entry&) const = default;
};
inline constexpr std::array<Entry, 6> entries{{{Algorithm::tree, Protocol::ll},
                                               {Algorithm::tree, Protocol::ll128},
                                               {Algorithm::tree, Protocol::simple},
                                               {Algorithm::ring, Protocol::ll},
                                               {Algorithm::ring, Protocol::ll128},
                                               {Algorithm::ring, Protocol::simple}}};
std::string text(const Entry&);  ///< "ring/simple"

/// How data goes: in lines that carry a flag, or in whole messages that are told of.
struct WireLines {
  double line_bytes = 1, data_bytes = 1;
  double hop = 0;         ///< seconds until a message of one line is seen in the same node
  double slot_bytes = 0;  ///< data of a message at most, on one channel
};

/// What NCCL's search found.
struct Channels {
  int count = 1;
  double rate = 0;    ///< bytes per second of each
  bool same = false;  ///< all go through the same GPUs in the same order
  int run = 1;        ///< channels of a call at most
};

inline constexpr size_t generations = 4;  ///< Volta and Turing, Ampere and Ada, Hopper, Blackwell
enum class Processor : uint8_t { intel, amd };

struct Machine {
  int gpus = 1;
  size_t generation = 0;
  Processor cpu = Processor::intel;
  bool nvlink = false, ll128 = false;
  bool simple_tree = false;  ///< NCCL found no tree that spreads a node's traffic over two GPUs
  double link_rate = 0;      ///< bytes per second, as all rates
  double link_latency = 0;   ///< seconds beside a protocol's hop
  double network_rate = 0;   ///< of all NICs of a node, one direction
  double network_latency = 0;
  double reduce_rate = 0;
  Channels one_node, nodes;

  const Channels& channels(int of_nodes) const { return of_nodes == 1 ? one_node : nodes; }
};

inline constexpr size_t corrections = 23;  ///< by powers of two from 64 B on
/// By protocol.
using ByProtocol = std::array<double, protocols>;
/// By generation, or another index, and by nodes: 1, 2, more.
using ByNodes = std::array<std::array<double, 3>, generations>;

/// NCCL's prediction: its defaults. Seconds and bytes per second.
struct Published {
  struct OfAlgorithm {
    ByProtocol base{}, nvlink{}, pci{}, network{};
  };
  std::string release;
  OfAlgorithm tree, ring;
  std::array<std::array<double, corrections>, protocols> correction{};
  double tree_share = 1, tree_ll_share = 1, tree_ll128_share_one_node = 1, tree_ll128_share_nodes = 1, simple_tree_share = 1;
  double ring_ll_share = 1, ring_ll128_share = 1, plateau_bytes = 0, plateau_before_ampere = 1, plateau = 1, simple_overheads = 1;
  std::array<double, 2> overhead{};  ///< by Processor
  ByNodes ll{}, ring_ll128{}, tree_ll128{}, tree_rate{};
};

struct ModelConstants {
  std::array<WireLines, protocols> lines;
  std::map<std::string, Machine, std::less<>> machines;
  Published published;

  /// Error: invalid_argument with the nearest name.
  Result<Machine> machine(std::string_view name) const;
};

/// `source` is the name of the text in errors.
Result<ModelConstants> parse_model_constants(std::string_view text, std::string_view source);
/// The file's, or where none is named those compiled in.
Result<ModelConstants> model_constants_of(const std::string& file);

}  // namespace gyre::topo::nccl
