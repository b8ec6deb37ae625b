// Which rank of `gyre-perf net` says what went wrong: of what they can't start with, the first that has an error, and no other.
#pragma once

#include "base/result.h"
#include "transport/bootstrap.h"

namespace gyre::perf {

/// All ranks have the error of the first rank that has one; on the others it begins with "rank N: ". Where ranks can't agree, since one is
/// gone, `mine` if it is an error, else the bootstrap's.
Status agree(transport::Bootstrap& bootstrap, const Status& mine);

/// Whether this rank says `error`, with which it ends: it does unless it heard of it from another rank. mine: what it came to agree() with.
bool says(const transport::Bootstrap& bootstrap, const Status& mine, const Error& error);

}  // namespace gyre::perf
