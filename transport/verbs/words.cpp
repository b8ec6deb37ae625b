#include "transport/verbs/words.h"

#include <fmt/format.h>

namespace gyre::transport::verbs {

const char* words(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return "success";
    case IBV_WC_LOC_LEN_ERR:
      return "local length error: a message is longer than the port or the receive allows";
    case IBV_WC_LOC_QP_OP_ERR:
      return "local queue pair operation error: the device refused what was posted, often its own limit or a bug of the driver";
    case IBV_WC_LOC_PROT_ERR:
      return "local protection error: memory that was to be sent is not registered any more; was it freed while it was sent?";
    case IBV_WC_WR_FLUSH_ERR:
      return "flushed: an earlier failure of this queue pair ended it";
    case IBV_WC_REM_INV_REQ_ERR:
      return "remote invalid request: the peer's queue pair does not allow this; do both ends run the same version?";
    case IBV_WC_REM_ACCESS_ERR:
      return "remote access error: the memory of the peer's receive is not registered any more; was it freed or deregistered?";
    case IBV_WC_REM_OP_ERR:
      return "remote operation error: the peer's device could not complete it; see the log there";
    case IBV_WC_RETRY_EXC_ERR:
      return "no acknowledgement after all retries: the peer or its host is gone, a port or cable on the way is down, or the fabric loses "
             "packets (flow control, NCCL_IB_GID_INDEX, NCCL_IB_TIMEOUT)";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "the peer's receives were not posted in time: it does not make progress";
    case IBV_WC_FATAL_ERR:
      return "fatal error of the device";
    case IBV_WC_RESP_TIMEOUT_ERR:
      return "response timeout: the device does not answer";
    default:
      return "an error of a kind that verbs does not explain";
  }
}

std::string words(const ibv_wc& failed, const std::string& rail, const std::string& peer) {
  return fmt::format("{} to {}: queue pair {}: {} (status {}, vendor code {:#x})", rail, peer, failed.qp_num, words(failed.status),
                     static_cast<int>(failed.status), failed.vendor_err);
}

}  // namespace gyre::transport::verbs
