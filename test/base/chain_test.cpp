#include "base/chain.h"

#include <vector>

#include "test/catch.h"

using namespace gyre;

namespace {

struct Member : ChainLink {
  explicit Member(int of) : value(of) {}
  int value;
};

std::vector<int> values(Chain<Member>& chain) {
  std::vector<int> all;
  for (const Member& member : chain) all.push_back(member.value);
  return all;
}

}  // namespace

TEST_CASE("a chain keeps its objects in their order, whoever leaves") {
  Chain<Member> chain;
  Member a(1), b(2), c(3);
  CHECK(chain.empty());
  for (Member* member : {&a, &b, &c}) chain.push_back(*member);
  CHECK(values(chain) == std::vector{1, 2, 3});
  Chain<Member>::erase(b);
  CHECK(values(chain) == std::vector{1, 3});
  Chain<Member>::erase(a);
  chain.push_back(b);
  CHECK(values(chain) == std::vector{3, 2});
  Chain<Member>::erase(c);
  Chain<Member>::erase(b);
  CHECK(chain.empty());
  CHECK(values(chain).empty());
}

TEST_CASE("while a chain is gone through, the member that is shown may leave") {
  Chain<Member> chain;
  Member a(1), b(2), c(3);
  for (Member* member : {&a, &b, &c}) chain.push_back(*member);
  std::vector<int> seen;
  for (Member& member : chain) {
    seen.push_back(member.value);
    Chain<Member>::erase(member);
  }
  CHECK(seen == std::vector{1, 2, 3});
  CHECK(chain.empty());
}

TEST_CASE("a cleared chain takes objects as a new one does") {
  Chain<Member> chain;
  Member a(1), b(2);
  chain.push_back(a);
  chain.clear();
  CHECK(chain.empty());
  chain.push_back(b);
  CHECK(values(chain) == std::vector{2});
}
