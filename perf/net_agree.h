// What the ranks of `gyre-perf net` say of what went wrong: one of them says it.
#pragma once

#include "base/result.h"
#include "transport/bootstrap.h"

namespace gyre::perf {

// All ranks have the error of the first rank that has one; on the others it begins with "rank N: ". Errors: also those of the bootstrap.
Status agree(transport::Bootstrap& bootstrap, const Status& mine);

// Whether this rank says `error`, with which it ends: it does unless it heard of it from another rank. mine: what it came to agree() with.
bool says(const transport::Bootstrap& bootstrap, const Status& mine, const Error& error);

}  // namespace gyre::perf
