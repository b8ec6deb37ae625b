// Failures of verbs in words that a person can act on.
#pragma once
#include <string>

#include "transport/verbs/api.h"

namespace gyre::transport::verbs {

/// What the status of a failed completion means, and what usually causes it.
const char* words(ibv_wc_status);
/// A completion that failed: peer, device, queue pair, status, the vendor's code, the usual cause.
std::string words(const ibv_wc&, const std::string& rail, const std::string& peer);

}  // namespace gyre::transport::verbs
