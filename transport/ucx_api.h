// UCX, opened at run time. gyre is not linked with it, so that it loads where UCX is absent and beside another one. Our code calls
// UCX's functions by their own names, as declared in UCX's headers: hidden functions of these names (transport/ucx_functions.h lists them)
// pass each call on to the library that was opened. Before load_ucx(), or where it failed, they return UCS_ERR_UNSUPPORTED, null or
// nothing.
#pragma once
#include <string>

#include "base/result.h"

namespace gyre::transport::ucx {

/// The oldest UCX that will do. To ucp_init_version() this is what we ask for, whatever headers gyre was compiled with.
inline constexpr unsigned oldest_major = 1, oldest_minor = 13;

/// Opens UCX, once in a process; an error says why there is none. For any thread, before any function of UCX.
Status load_ucx();

/// "1.13.1"; empty: not opened.
std::string version();

/// Also what networks are asked for (uct_*). An error where the UCX found is not of the version whose headers gyre was compiled with,
/// since it would write structs of another size.
Status load_ucx_devices();

}  // namespace gyre::transport::ucx
