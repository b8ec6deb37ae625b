// What one UCX worker does by itself: both ends of a connection, and what is garbage.
#include <array>
#include <cstring>
#include <future>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/must.h"
#include "test/transport/ucx_waiting.h"
#include "transport/ucx.h"
#include "transport/ucx_worker.h"

using namespace gyre;
using namespace gyre::transport;
using gyre::test::accept_one;
using gyre::test::await;
using gyre::test::must;

TEST_CASE("ucx: one worker can be both sides, with two listeners") {
  auto worker = must(open_ucx_worker({}));
  auto first = must(worker->listen()), second = must(worker->listen());
  auto to_second = must(worker->connect(second->address(), "second"));
  auto to_first = must(worker->connect(first->address(), std::string(64, 'x')));
  auto at_first = accept_one(*worker, *first), at_second = accept_one(*worker, *second);
  for (auto* e : {&to_first, &to_second, &at_first, &at_second}) await(*worker, "ready", [&] { return must((*e)->ready()); });
  CHECK(at_first->hello() == std::string(64, 'x'));
  CHECK(at_second->hello() == "second");
  CHECK_FALSE(worker->connect(first->address(), std::string(65, 'x')));
  std::byte sent{7}, received{};
  auto* r = at_first->receive(1, {&received, 1}, nullptr);
  auto* s = to_first->send(1, {&sent, 1}, nullptr);
  await(*worker, "message", [&] { return r->done && s->done; });
  CHECK(received == sent);
}

TEST_CASE("ucx: an endpoint has a fixed number of requests, and a closed one leaves nothing behind") {
  auto worker = must(open_ucx_worker({}));
  auto listener = must(worker->listen());
  auto left = must(worker->connect(listener->address(), ""));
  auto right = accept_one(*worker, *listener);
  for (auto* e : {&left, &right}) await(*worker, "ready", [&] { return must((*e)->ready()); });
  std::vector<std::byte> data(1 << 20);
  int taken = 0;
  while (right->receive(1, data, nullptr) != nullptr) ++taken;
  CHECK(taken >= 256);
  CHECK(taken < 1000);
  for (int i = 0; i < 10; ++i) CHECK(left->send(2, data, nullptr) != nullptr);  // never received
}

TEST_CASE("ucx message: decodes what it encoded, and refuses every cut and every changed byte") {
  using namespace gyre::transport::ucx;
  const Message m{MessageKind::hello, 77, {3, 1234}, true, 88, 99, "host, process 1", "hello", std::string(300, 'a')};
  const auto bytes = must(encode(m));
  const auto back = must(decode(MessageKind::hello, bytes));
  CHECK(back.id == 77);
  CHECK(back.slots.bytes == 1234);
  CHECK(back.unwatched);
  CHECK(back.host == 88);
  CHECK(back.process == 99);
  CHECK(back.name == m.name);
  CHECK(back.hello == m.hello);
  CHECK(back.worker_address == m.worker_address);
  CHECK_FALSE(decode(MessageKind::reply, bytes));
  CHECK_FALSE(decode(MessageKind::hello, bytes + "x"));
  for (size_t i = 0; i < bytes.size(); ++i) {
    REQUIRE_FALSE(decode(MessageKind::hello, std::string_view(bytes).substr(0, i)));
    auto changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x55);
    REQUIRE_FALSE(decode(MessageKind::hello, changed));
  }
}

TEST_CASE("ucx: hellos that are garbage are dropped, and the listener goes on") {
  using namespace gyre::transport::ucx;
  auto worker = must(open_ucx_worker({})), stranger = must(open_ucx_worker({}));
  auto listener = must(worker->listen());
  const auto address = must(decode(MessageKind::address, listener->address()));

  auto& raw = static_cast<UcxWorker&>(*stranger);
  const auto opened = must(raw.open_endpoint(address, true));
  Requests requests(16);
  auto cut = must(encode({MessageKind::hello, 5, {}, false, 0, 0, "name", "hello", "address"}));
  cut.pop_back();
  const std::vector<std::string> garbage{
      "", "x", std::string(header_bytes, '\xff'), cut, std::string(max_message_bytes + 1, 'a'), std::string(4 << 20, 'b')};
  std::vector<Request*> sends;
  for (const auto& g : garbage)
    sends.push_back(requests.send(opened.endpoint, wire_tag(TagKind::hello, address.id), std::as_bytes(std::span(g))));
  for (auto* s : sends) {
    await(*worker, "garbage", [&] {
      stranger->progress();
      REQUIRE(must(listener->accept()) == nullptr);
      return s->done;
    });
  }

  auto left = must(stranger->connect(listener->address(), "a good one"));
  std::unique_ptr<Endpoint> right;
  await(*worker, "a good hello", [&] {
    stranger->progress();
    if (!right) right = must(listener->accept());
    return right && must(right->ready()) && must(left->ready());
  });
  CHECK(right->hello() == "a good one");
  std::byte bytes[2]{};
  Request* all[]{right->receive(1, {bytes, 1}, nullptr), left->receive(1, {bytes + 1, 1}, nullptr), right->send(1, {}, nullptr),
                 left->send(1, {}, nullptr)};
  for (auto* r : all) {
    await(*worker, "message", [&] {
      stranger->progress();
      return r->done;
    });
  }
  // At once, since each side's close waits a while for the other's progress.
  auto closed = std::async(std::launch::async, [&] { left.reset(); });
  right.reset();
  closed.wait();
}

TEST_CASE("ucx: an address that is garbage is an error") {
  auto worker = must(open_ucx_worker({}));
  CHECK_FALSE(worker->connect("", ""));
  CHECK_FALSE(worker->connect(std::string(500, 'z'), ""));
}

TEST_CASE("ucx: there is one device, between hosts") {
  const auto all = ucx_devices();
  REQUIRE(all.size() == 1);
  CHECK(all[0].between_hosts);
}
