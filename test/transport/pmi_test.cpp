#include "transport/pmi.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique.h"
#include "test/catch.h"

using namespace gyre;
using namespace gyre::transport;

namespace {

using Script = std::vector<std::pair<std::string, std::string>>;  // what is asked, what is answered

std::string read_line(int fd) {
  std::string line;
  for (char c = 0; ::read(fd, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

struct Played {
  Result<SharedByPmi> result;
  std::vector<std::string> unexpected;
};

/// share_by_pmi() against an mpirun that follows the script and then closes.
Played play(Rank rank, const Script& script) {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()) != 0) return {Error{Code::system, "socketpair"}, {}};
  const UniqueFd ours(fds[0]);
  UniqueFd mpiruns(fds[1]);
  std::vector<std::string> unexpected;
  std::thread mpirun([&] {
    for (const auto& [asked, answer] : script) {
      const std::string line = read_line(mpiruns.get());
      if (line != asked) unexpected.push_back(line);
      const std::string reply = answer + "\n";
      if (::send(mpiruns.get(), reply.data(), reply.size(), MSG_NOSIGNAL) < 0) break;
    }
    ::shutdown(mpiruns.get(), SHUT_RDWR);
  });
  auto result = share_by_pmi(ours.get(), rank, "10.0.0.7");
  ::shutdown(ours.get(), SHUT_RDWR);
  mpirun.join();
  return {std::move(result), unexpected};
}

const Script::value_type init_step{"cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"};
const Script::value_type name_step{"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_77_0"};
const Script::value_type put_step{"cmd=put kvsname=kvs_77_0 key=gyre-root value=10.0.0.7", "cmd=put_result rc=0 msg=success"};
const Script::value_type barrier_step{"cmd=barrier_in", "cmd=barrier_out rc=0"};
const Script::value_type get_step{"cmd=get kvsname=kvs_77_0 key=gyre-root", "cmd=get_result rc=0 msg=success value=10.0.0.7"};
const Script::value_type finalize_step{"cmd=finalize", "cmd=finalize_ack"};

}  // namespace

TEST_CASE("rank 0 publishes its text by PMI and reads it back") {
  const Played played = play(0, {init_step, name_step, put_step, barrier_step, get_step, finalize_step});
  CHECK(played.unexpected.empty());
  REQUIRE(played.result);
  CHECK(played.result->job == "kvs_77_0");
  CHECK(played.result->text == "10.0.0.7");
}

TEST_CASE("another rank only reads by PMI") {
  const Played played = play(3, {init_step, name_step, barrier_step, get_step, finalize_step});
  CHECK(played.unexpected.empty());
  REQUIRE(played.result);
  CHECK(played.result->text == "10.0.0.7");
}

TEST_CASE("a refusal by PMI is an error with the reply in it") {
  const Played played = play(1, {init_step, name_step, barrier_step, {get_step.first, "cmd=get_result rc=-1 msg=key_not_found"}});
  REQUIRE_FALSE(played.result);
  CHECK(played.result.error().what.find("key_not_found") != std::string::npos);
  CHECK(played.result.error().what.find("GYRE_ROOT") != std::string::npos);
}

TEST_CASE("an mpirun that closes PMI is an error") {
  const Played played = play(1, {init_step});
  REQUIRE_FALSE(played.result);
  CHECK(played.result.error().what.find("PMI: ") == 0);
}
