// What `auto` takes between two ranks, and what follows for all of them. A pure function of what all ranks know, so that both sides of a
// pair decide alike.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "engine/facts.h"

namespace gyre::engine {

/// In the order in which `auto` tries them; loopback only for who names it.
inline constexpr std::string_view transport_order[] = {"shm", "verbs", "ucx", "tcp", "loopback"};

/// Whether all pairs of ranks will be joined by tcp, or not at all.
bool all_over_tcp(const Config&, const std::vector<Facts>&);
/// Whether verbs will join all pairs of ranks of different hosts, of which there are some: as `auto` chooses, or because it is named.
bool hosts_by_verbs(const Config&, const std::vector<Facts>&);
/// The configuration as it suits how the ranks will be joined: over tcp larger slots and fewer, where no rank has set any, since what a
/// message costs there is the kernel's work for each.
Config suited(Config, const std::vector<Facts>&);

}  // namespace gyre::engine
