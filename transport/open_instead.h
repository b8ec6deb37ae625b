// For tests: another worker in a transport's place, under its name.
#pragma once
#include <functional>
#include <string_view>

#include "transport/transport.h"

namespace gyre::transport {

using OpenWorker = std::function<Result<std::unique_ptr<Worker>>(Slots)>;
/// What open_worker() opens for this backend from now on; null: the backend's own again. Not while another thread opens one.
void open_instead(std::string_view backend, OpenWorker);

}  // namespace gyre::transport
