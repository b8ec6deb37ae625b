// NCCL's interface beside an NCCL, a fake one, where there is no memory left for what gyre does in the background.
#include <array>
#include <cstdlib>

#include "plugin/nccl/wrap_ballot.h"
#include "plugin/nccl/wrap_real.h"
#include "test/catch.h"
#include "test/folder.h"
#include "test/kept_log.h"
#include "test/plugin/nccl_ranks.h"
#include "test/plugin/scarce_memory.h"

using namespace gyre;
namespace wrap = plugin::nccl::wrap;

TEST_CASE("wrap without memory: ranks that can't say in the background what they offer are NCCL's, and ready") {
  const test::Folder folder;
  ::setenv("TEST_FAKE_FOLDER", folder.path().c_str(), 1);
  const ncclUniqueId id = test::new_id();
  const test::KeptLog log;
  ncclConfig_t config = test::nccl_config();
  config.blocking = 0;
  std::array<ncclComm_t, 2> comms{};
  CHECK(ncclCommInitRankConfig(&comms[0], 2, id, 0, &config) == ncclInProgress);
  test::refused_bytes = wrap::ballot(wrap::config(), false, 0, false).size() + 1;  // the text, and its end
  CHECK(ncclCommInitRankConfig(&comms[1], 2, id, 1, &config) == ncclInProgress);
  for (const ncclComm_t comm : comms) CHECK(test::settled(comm) == ncclSuccess);
  test::refused_bytes = 0;
  CHECK(log.count("NCCL runs all calls of this communicator: std::bad_alloc") == 2);
  for (const ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm) == ncclSuccess);
}
