// Random traffic over random paths that go on failing: whatever was sent arrives once, whole, and in order for its tag.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "test/catch.h"
#include "test/slow_builds.h"
#include "test/transport/fake_verbs.h"
#include "test/transport/verbs_two.h"

namespace gyre::test {
namespace {

using transport::Request;
using transport::verbs::PathOptions;

constexpr size_t places = 40, place_bytes = 20'000, tags = 3;
constexpr std::byte untouched{0xee};

struct Message {
  size_t room = 0, bytes = 0, place = 0;
  uint32_t seed = 0;
  Request* receive = nullptr;
};

class Storm {
 public:
  explicit Storm(uint32_t seed) : random_(seed), two_(rails(), 1 + pick(2), pick(3) == 0, options(), {}, traits()) {
    if (pick(2) == 0) two_.fake.shuffle(seed);
    for (size_t i = 0; i < places; ++i) {
      free_to_.push_back(i);
      free_from_.push_back(i);
    }
  }
  /// Until so many have arrived and are known to have. False: it stands still, or the connection has failed.
  bool run(size_t messages) {
    for (int idle = 0; arrived_ < messages || !sends_.empty(); ++idle) {
      if (idle > 60'000 || two_.a().link->failure() || two_.b().link->failure()) return false;
      if (asked_ < messages) ask();
      send(pick(tags));
      for (uint32_t i = pick(4); i > 0; --i) progress();
      if (take_sent() + take_received() > 0) idle = 0;
      disturb();
    }
    return true;
  }
  bool right() const { return right_; }

 private:
  uint32_t pick(size_t below) { return static_cast<uint32_t>(random_() % below); }
  std::array<int, 2> rails() { return {1 + static_cast<int>(pick(3)), 1 + static_cast<int>(pick(3))}; }
  PathOptions options() {
    PathOptions options;
    options.adaptive_routing = pick(2) == 0;
    options.adaptive_threshold = 1000;
    return options;
  }
  FakeTraits traits() {
    FakeTraits traits;
    if (pick(2) == 0) traits.max_message = 4096;
    if (pick(3) == 0) traits.max_qp_wr = 64;
    return traits;
  }
  static std::byte byte_of(uint32_t seed, size_t i) { return static_cast<std::byte>((seed * 2654435761U + i * 40503U) >> 11U); }

  // One receive, or several that are waited for together.
  void ask() {
    const size_t size = 1 + pick(8);
    if (free_to_.size() < size || !two_.b().link->has_room(size)) return;
    for (size_t i = 0; i < size; ++i) {
      const size_t tag = pick(tags);
      Message message;
      message.room = 1 + pick(pick(3) == 0 ? place_bytes - 64 : 300);
      message.bytes = pick(4) == 0 ? pick(message.room + 1) : message.room;
      message.seed = static_cast<uint32_t>(random_());
      message.place = free_to_.back();
      free_to_.pop_back();
      std::fill_n(to(message), place_bytes, untouched);
      message.receive =
          two_.b().receive(tag, message.place * place_bytes, message.room, {static_cast<uint8_t>(size), static_cast<uint8_t>(i)});
      unsent_[tag].push_back(message);
      receives_.push_back(message);
      ++asked_;
    }
  }
  void send(size_t tag) {
    if (unsent_[tag].empty() || free_from_.empty()) return;
    const Message& message = unsent_[tag].front();
    const size_t place = free_from_.back() * place_bytes;
    for (size_t i = 0; i < message.bytes; ++i) two_.a().memory[place + i] = byte_of(message.seed, i);
    Request* request = two_.a().send(tag, place, message.bytes);
    if (!request) return;
    sends_.push_back({request, free_from_.back()});
    free_from_.pop_back();
    unsent_[tag].pop_front();
  }
  void progress() {
    auto& end = two_.ends[pick(2)];
    pick(2) == 0 ? (void)poll(end.rails) : (void)end.link->catch_up();
  }
  // Its memory is written anew at once, which nothing may read any more.
  size_t take_sent() {
    return std::erase_if(sends_, [&](const auto& sent) {
      if (!sent.first->done) return false;
      right_ = right_ && !sent.first->failure;
      std::fill_n(two_.a().memory.begin() + static_cast<ptrdiff_t>(sent.second * place_bytes), place_bytes, std::byte{0x55});
      two_.a().link->release(sent.first);
      free_from_.push_back(sent.second);
      return true;
    });
  }
  size_t take_received() {
    const size_t count = std::erase_if(receives_, [&](const Message& message) {
      if (!message.receive->done) return false;
      right_ = right_ && !message.receive->failure && message.receive->bytes == message.bytes;
      for (size_t i = 0; i < place_bytes; ++i)
        right_ = right_ && to(message)[static_cast<ptrdiff_t>(i)] == (i < message.bytes ? byte_of(message.seed, i) : untouched);
      two_.b().link->release(message.receive);
      free_to_.push_back(message.place);
      return true;
    });
    arrived_ += count;
    return count;
  }
  std::vector<std::byte>::iterator to(const Message& message) {
    return two_.b().memory.begin() + static_cast<ptrdiff_t>(message.place * place_bytes);
  }

  // As many failures as leave a path, wherever the others are in coming back.
  void disturb() {
    if (held_ > 0 && --held_ == 0) two_.fake.hold(false);
    if (held_ == 0 && pick(500) == 0) two_.fake.hold((held_ = 1 + pick(60)) > 0);
    if (pick(40) == 0) {
      for (auto& end : two_.ends) end.link->retry_at_once();
      two_.tick();
    }
    // Not before both ends have heard: a path about to fail would count as one that carries.
    if (!broken_.empty() && pick(120) == 0 && all_heard_of(broken_.back())) {
      two_.fake.restore(broken_.back());
      broken_.pop_back();
    }
    if (pick(30) != 0) return;
    const size_t side = pick(2), rail = pick(two_.ends[side].rails.size());
    const std::string device = name(side, rail);
    const bool one_more_fails = two_.fake.counts().sends < fails_until_;
    if (one_more_fails || left_without(device) == 0) return;
    switch (pick(4)) {
      case 0:
        return two_.ends[side].link->lose(*two_.ends[side].rails[rail], std::nullopt, {Code::system, "the test has broken it"});
      case 1:
        two_.fake.cut_path(device);
        return broken_.push_back(device);
      case 2:
        two_.fake.lose_acknowledgements(device);
        return broken_.push_back(device);
      default:  // soon, and on whatever path that is
        if (left_without(device) == 1) return;
        fails_until_ = two_.fake.counts().sends + 5;
        return two_.fake.fail("post_send", EIO, 5);
    }
  }
  // Paths that carry for both ends.
  size_t left_without(const std::string& device) {
    size_t left = 0;
    for (size_t path = 0; path < two_.a().link->paths(); ++path) {
      bool carries = true;
      for (size_t side = 0; side < 2; ++side) {
        const std::string by = name(side, path % two_.ends[side].rails.size());
        carries =
            carries && two_.ends[side].link->alive(path) && by != device && std::find(broken_.begin(), broken_.end(), by) == broken_.end();
      }
      left += carries ? 1 : 0;
    }
    return left;
  }
  bool all_heard_of(const std::string& device) {
    for (size_t path = 0; path < two_.a().link->paths(); ++path)
      for (size_t side = 0; side < 2; ++side)
        if (name(side, path % two_.ends[side].rails.size()) == device && (two_.a().link->alive(path) || two_.b().link->alive(path)))
          return false;
    return true;
  }
  static std::string name(size_t side, size_t rail) { return (side == 0 ? "a" : "b") + std::to_string(rail); }

  std::mt19937 random_;
  Two two_;
  std::vector<size_t> free_to_, free_from_;
  std::array<std::deque<Message>, tags> unsent_;  // in the order of their receives
  std::vector<Message> receives_;
  std::vector<std::pair<Request*, size_t>> sends_;
  size_t asked_ = 0, arrived_ = 0;
  uint32_t held_ = 0;
  std::vector<std::string> broken_;
  uint64_t fails_until_ = 0;  // so many sends
  bool right_ = true;
};

}  // namespace

TEST_CASE("in a storm of failures every message arrives once, whole and in its order") {
  for (uint32_t seed = 1; seed <= (sanitized ? 4 : 12); ++seed) {
    INFO("seed " << seed);
    Storm storm(seed);
    CHECK(storm.run(600));
    CHECK(storm.right());
  }
}

}  // namespace gyre::test
