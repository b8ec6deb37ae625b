// What the process keeps: devices, fused ones, communicators and their groups, threads.
#include "plugin/process.h"

#include <cstdlib>

#include "test/plugin/joined.h"

using namespace gyre;
using namespace gyre::plugin;
using gyre::test::contains;
using gyre::test::Host;
using gyre::test::Joined;
using gyre::test::Receive;

TEST_CASE("process: devices are there from the first open on, each with itself as its member") {
  Host host(3);
  CHECK(*host.process.devices() == 0);
  CHECK_FALSE(host.process.properties(0));
  host.context();
  CHECK(*host.process.devices() == 3);
  for (int i = 0; i < 3; ++i) {
    const auto properties = host.process.properties(i);
    REQUIRE(properties);
    CHECK(properties->device.name == "loop" + std::to_string(i));
    CHECK(std::vector(properties->members.begin(), properties->members.end()) == std::vector{i});
  }
  for (const int wrong : {-1, 3, 1000}) {
    const auto properties = host.process.properties(wrong);
    REQUIRE_FALSE(properties);
    CHECK(properties.error().code == Code::invalid_argument);
    test::HandleBytes handle;
    CHECK_FALSE(host.process.listen(host.context(), wrong, handle));
  }
}

TEST_CASE("process: where there is no device open says why, and works when there is one") {
  Host host;
  host.provider.no_devices = Error{Code::system, "no card"};
  for (int i = 0; i < 2; ++i) {
    const auto opened = host.process.open(1, -1);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().what == "no card");
  }
  host.provider.no_devices.reset();
  host.context();
  CHECK(*host.process.devices() == 1);
}

TEST_CASE("process: a wrong option is open's error") {
  Host host;
  ::setenv("GYRE_PEER_TIMEOUT", "soon", 1);
  const auto opened = host.process.open(1, -1);
  ::unsetenv("GYRE_PEER_TIMEOUT");
  REQUIRE_FALSE(opened);
  CHECK(contains(opened.error(), "GYRE_PEER_TIMEOUT"));
}

TEST_CASE("process: devices are fused, and the whole is what its members are together") {
  Host host(4);
  host.context();
  const std::vector<int> members{2, 0, 3};
  REQUIRE(*host.process.make_virtual_device(members) == 4);
  CHECK(*host.process.devices() == 5);
  const auto whole = *host.process.properties(4);
  CHECK(whole.device.name == "loop2+loop0+loop3");
  CHECK(whole.device.mbit_per_s == 3000 + 1000 + 4000);
  CHECK(std::vector(whole.members.begin(), whole.members.end()) == members);
  for (int i = 0; i < 20; ++i) REQUIRE(host.process.make_virtual_device(std::array{1}));
  CHECK(std::vector(whole.members.begin(), whole.members.end()) == members);  // it stays where it is
  Joined joined(host, host, 4, 4);
  test::check_joined(joined.sends, joined.receives);
  CHECK(joined.sends->group().members().size() == 3);
}

TEST_CASE("process: what can't be fused is an error, and no device comes of it") {
  Host host(9);
  host.context();
  REQUIRE(*host.process.make_virtual_device(std::array{0, 1}) == 9);
  const std::vector<std::vector<int>> wrong{{}, {0, 1, 2, 3, 4, 5, 6, 7, 8}, {0, 10}, {-1}, {2, 2}, {0, 9}, {9}};
  for (const auto& members : wrong) {
    const auto made = host.process.make_virtual_device(members);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == Code::invalid_argument);
  }
  CHECK(*host.process.devices() == 10);
  CHECK(host.process.make_virtual_device(std::array{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_CASE("process: a plugin that is loaded again has its physical devices at first") {
  Host host(2);
  auto* first = *host.process.open(1, -1);
  CHECK(*host.process.devices() == 2);
  REQUIRE(*host.process.make_virtual_device(std::array{0, 1}) == 2);
  CHECK(*host.process.devices() == 3);
  auto* second = *host.process.open(2, -1);
  host.process.finalize(first);
  CHECK(*host.process.devices() == 3);
  auto* third = *host.process.open(3, -1);
  CHECK(*host.process.devices() == 3);  // it was never unloaded
  host.process.finalize(second);
  host.process.finalize(third);
  auto* fourth = *host.process.open(4, -1);
  CHECK(host.process.properties(2));  // by who has not unloaded it and knows its devices still
  CHECK(*host.process.devices() == 2);
  CHECK_FALSE(host.process.properties(2));
  CHECK(*host.process.devices() == 2);
  REQUIRE(*host.process.make_virtual_device(std::array{1, 0}) == 2);
  CHECK(*host.process.devices() == 3);
  CHECK(host.process.properties(2)->device.name == "loop1+loop0");
  host.process.finalize(fourth);
}

TEST_CASE("process: connections of one communicator, device and thread share a group, and no others do") {
  Host host(2);
  auto* other = *host.process.open(2, -1);
  const auto group = *host.process.group(host.context(), 0);
  CHECK(*host.process.group(host.context(), 0) == group);
  CHECK(*host.process.group(host.context(), 1) != group);
  CHECK(*host.process.group(other, 0) != group);
  bool same = true;
  std::jthread([&] { same = *host.process.group(host.context(), 0) == group; }).join();
  CHECK_FALSE(same);
  host.process.finalize(other);
}

TEST_CASE("process: with its communicator goes what was left open of it, and of no other") {
  Host from, to;
  auto* other = *from.process.open(2, -1);
  test::Meeting meeting(from, to);
  meeting.meet();
  Joined stays(from, to);
  test::HandleBytes handle;
  auto* listener = *from.process.listen(other, 0, handle);
  test::HandleBytes another;
  auto* of_none = *from.process.listen(nullptr, 0, another);
  from.process.finalize(nullptr);
  CHECK(from.process.accept(listener));
  CHECK(from.process.accept(of_none));
  from.process.close(of_none);
  from.process.finalize(other);
  CHECK_FALSE(from.process.accept(listener));
  test::check_joined(stays.sends, stays.receives);
  const uint32_t before = from.provider.network().endpoints;
  CHECK(before == 2);
  to.process.finalize(to.context());
  CHECK(to.provider.network().endpoints == 0);
  // Closed once more by who does not know.
  to.process.close(meeting.receives);
  from.process.close(meeting.sends);
}

TEST_CASE("process: a request of one group is done though only another's is tested") {
  Host host(2);
  host.provider.network().lazy = true;
  Joined joined(host, host, 0, 1);
  REQUIRE(&joined.sends->group() != &joined.receives->group());
  Receive receive(joined.receives);
  auto* request = test::send(joined.sends, "moved on by the receiver");
  REQUIRE(test::finish(receive));
  CHECK(receive.text() == "moved on by the receiver");
  CHECK(test::finish(request));
}

TEST_CASE("process: a request of one group is done though another thread's only tests its own") {
  Host host;
  host.provider.network().lazy = true;
  test::HandleBytes handle;
  auto* listener = *host.process.listen(host.context(), 0, handle);
  Comm *sends = nullptr, *receives = nullptr;
  std::jthread([&] {
    test::becomes([&] {
      if (!sends) sends = *host.process.connect(host.context(), 0, handle);
      if (!receives) receives = *host.process.accept(listener);
      return sends && receives;
    });
  }).join();
  REQUIRE(sends);
  REQUIRE(receives);
  REQUIRE(&sends->group() != &receives->group());
  test::check_joined(sends, receives);
  for (auto* comm : {sends, receives}) host.process.close(comm);
  host.process.close(listener);
}

TEST_CASE("process: connections that are made after a group's transport was stopped get another group") {
  Host host;
  const auto group = *host.process.group(host.context(), 0);
  (void)*group->worker(WayKind::network);
  host.provider.network().stopped = true;
  CHECK(*host.process.group(host.context(), 0) != group);
}
