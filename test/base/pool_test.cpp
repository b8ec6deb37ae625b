#include "base/pool.h"

#include <set>

#include "test/catch.h"

using namespace gyre;

namespace {

struct Object {
  int value = 7;
};

}  // namespace

TEST_CASE("a pool gives as many objects as it has, all different, then null") {
  Pool<Object> pool(3);
  std::set<Object*> taken;
  for (int i = 0; i < 3; ++i) taken.insert(pool.take());
  CHECK(taken.size() == 3);
  CHECK_FALSE(taken.contains(nullptr));
  CHECK(pool.in_use() == 3);
  CHECK(pool.take() == nullptr);
  CHECK(pool.in_use() == 3);
}

TEST_CASE("what is given back to a pool is taken again, as it was constructed") {
  Pool<Object> pool(1);
  Object* object = pool.take();
  object->value = 1;
  pool.give(object);
  CHECK(pool.in_use() == 0);
  CHECK(pool.take() == object);
  CHECK(object->value == 7);
}

TEST_CASE("a pool of nothing is always empty") {
  Pool<Object> pool(0);
  CHECK(pool.take() == nullptr);
  CHECK(pool.in_use() == 0);
}
