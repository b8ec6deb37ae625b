#include "base/hash.h"

#include "test/catch.h"

using namespace gyre;

TEST_CASE("hashes are what others have published") {
  CHECK(fnv1a("") == 0xcbf29ce484222325);
  CHECK(fnv1a("a") == 0xaf63dc4c8601ec8c);
  CHECK(fnv1a("foobar") == 0x85944171f73967e8);
  CHECK(mix(0x9e3779b97f4a7c15) == 0xe220a8397b1dcdaf);  // splitmix64's first number from seed 0
}
