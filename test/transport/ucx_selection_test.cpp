// UCX_TLS and UCX_NET_DEVICES read as UCX reads them.
#include "transport/ucx_selection.h"

#include "test/catch.h"

using gyre::transport::ucx::Selection;

namespace {

/// Of these transports, those that UCX_TLS allows.
std::string allowed(const std::string& tls) {
  std::string line;
  for (const char* transport :
       {"tcp", "rc_verbs", "rc_mlx5", "ud_verbs", "ud_mlx5", "dc_mlx5", "posix", "sysv", "cma", "self", "cuda_copy"})
    if (Selection(tls, "all").allows_transport(transport)) line += (line.empty() ? "" : " ") + std::string(transport);
  return line;
}

}  // namespace

TEST_CASE("UCX_TLS names transports or families of them") {
  const std::string all = "tcp rc_verbs rc_mlx5 ud_verbs ud_mlx5 dc_mlx5 posix sysv cma self cuda_copy";
  CHECK(allowed("all") == all);
  CHECK(allowed("") == all);
  CHECK(allowed("tcp,self") == "tcp self");
  CHECK(allowed("ib") == "rc_verbs rc_mlx5 ud_verbs ud_mlx5 dc_mlx5");
  CHECK(allowed("rc") == "rc_verbs rc_mlx5");
  CHECK(allowed("rc_v") == "rc_verbs");
  CHECK(allowed("rc_x,ud_x") == "rc_mlx5 ud_mlx5");
  CHECK(allowed("ud_v") == "ud_verbs");
  CHECK(allowed("dc_x") == "dc_mlx5");
  CHECK(allowed("ud") == "ud_verbs ud_mlx5");
  CHECK(allowed("sm") == "posix sysv cma");
  CHECK(allowed("shm") == "posix sysv cma");
  CHECK(allowed("mm") == "posix sysv");
  CHECK(allowed("cuda") == "cuda_copy");
  CHECK(allowed("r").empty());
  CHECK(allowed("rc_").empty());
}

TEST_CASE("UCX_TLS with ^ leaves out what it names") {
  CHECK(allowed("^ib") == "tcp posix sysv cma self cuda_copy");
  CHECK(allowed("^tcp,sm") == "rc_verbs rc_mlx5 ud_verbs ud_mlx5 dc_mlx5 self cuda_copy");
  CHECK(allowed("^rc_x") == "tcp rc_verbs ud_verbs ud_mlx5 dc_mlx5 posix sysv cma self cuda_copy");
}

TEST_CASE("UCX_TLS with a backslash names a transport itself, and with :aux nothing that carries data") {
  CHECK(allowed("\\rc_verbs") == "rc_verbs");
  CHECK(allowed("\\rc").empty());
  CHECK(allowed("tcp,ud_verbs:aux") == "tcp");
}

TEST_CASE("UCX_NET_DEVICES names whole devices with their port") {
  CHECK(Selection("all", "all").allows_device("eth0"));
  CHECK(Selection("all", "").allows_device("eth0"));
  const Selection two("all", "mlx5_0:1,eth1");
  CHECK(two.allows_device("mlx5_0:1"));
  CHECK(two.allows_device("eth1"));
  CHECK_FALSE(two.allows_device("mlx5_0:2"));
  CHECK_FALSE(two.allows_device("eth10"));
  CHECK_FALSE(Selection("all", "mlx5_0").allows_device("mlx5_0:1"));
  CHECK(two.devices_rule() == "UCX_NET_DEVICES=mlx5_0:1,eth1");
}
