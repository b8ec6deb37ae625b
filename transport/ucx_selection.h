// What UCX_TLS and UCX_NET_DEVICES leave of UCX's transports and devices, read as UCX reads them, since only a whole UCX context applies
// them itself. Text only; nothing of UCX is called.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace gyre::transport::ucx {

class Selection {
 public:
  /// The variables' values, such as "^ud,sm" and "mlx5_0:1,eth0"; "all" or empty: no restriction.
  Selection(std::string transports, std::string devices);
  bool allows_transport(std::string_view transport) const;
  bool allows_device(std::string_view device) const;
  /// As the user would set them, for messages.
  std::string transports_rule() const { return "UCX_TLS=" + transports_text_; }
  std::string devices_rule() const { return "UCX_NET_DEVICES=" + devices_text_; }

 private:
  std::string transports_text_, devices_text_;
  std::vector<std::string> transports_, devices_;
  bool exclude_ = false;
};

}  // namespace gyre::transport::ucx
