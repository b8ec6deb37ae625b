#include "base/types.h"

#include <set>

#include "test/catch.h"

using namespace gyre;

TEST_CASE("every type and operation is found by its own name") {
  std::set<std::string_view> names;
  for (const DataType type : all_data_types()) {
    CHECK(data_type_named(name(type)) == type);
    names.insert(name(type));
  }
  for (const ReduceOp op : all_reduce_ops()) {
    CHECK(reduce_op_named(name(op)) == op);
    names.insert(name(op));
  }
  CHECK(names.size() == data_type_count + reduce_op_count);
}

TEST_CASE("other names are no types and no operations") {
  for (const char* wrong : {"", "float32", "Float", "sum ", "mulsum"}) {
    INFO(wrong);
    CHECK_FALSE(data_type_named(wrong));
    CHECK_FALSE(reduce_op_named(wrong));
  }
}

TEST_CASE("names are those of nccl-tests") {
  CHECK(name(DataType::float16) == "half");
  CHECK(name(DataType::float32) == "float");
  CHECK(name(DataType::float64) == "double");
  CHECK(name(DataType::float8e4m3) == "f8e4m3");
  CHECK(name(DataType::float8e5m2) == "f8e5m2");
  CHECK(name(Collective::all_reduce) == "all_reduce");
}

TEST_CASE("sizes are those of the types") {
  CHECK(size_of(DataType::int8) == 1);
  CHECK(size_of(DataType::uint8) == 1);
  CHECK(size_of(DataType::int32) == 4);
  CHECK(size_of(DataType::uint32) == 4);
  CHECK(size_of(DataType::int64) == 8);
  CHECK(size_of(DataType::uint64) == 8);
  CHECK(size_of(DataType::float16) == 2);
  CHECK(size_of(DataType::float32) == 4);
  CHECK(size_of(DataType::float64) == 8);
  CHECK(size_of(DataType::bfloat16) == 2);
  CHECK(size_of(DataType::float8e4m3) == 1);
  CHECK(size_of(DataType::float8e5m2) == 1);
}

TEST_CASE("types and operations have NCCL's numbers") {
  CHECK(static_cast<int>(DataType::int8) == 0);
  CHECK(static_cast<int>(DataType::uint8) == 1);
  CHECK(static_cast<int>(DataType::int32) == 2);
  CHECK(static_cast<int>(DataType::uint32) == 3);
  CHECK(static_cast<int>(DataType::int64) == 4);
  CHECK(static_cast<int>(DataType::uint64) == 5);
  CHECK(static_cast<int>(DataType::float16) == 6);
  CHECK(static_cast<int>(DataType::float32) == 7);
  CHECK(static_cast<int>(DataType::float64) == 8);
  CHECK(static_cast<int>(DataType::bfloat16) == 9);
  CHECK(static_cast<int>(DataType::float8e4m3) == 10);
  CHECK(static_cast<int>(DataType::float8e5m2) == 11);
  CHECK(static_cast<int>(ReduceOp::sum) == 0);
  CHECK(static_cast<int>(ReduceOp::prod) == 1);
  CHECK(static_cast<int>(ReduceOp::max) == 2);
  CHECK(static_cast<int>(ReduceOp::min) == 3);
  CHECK(static_cast<int>(ReduceOp::avg) == 4);
}

TEST_CASE("the integers are the six types before the floats") {
  size_t integers = 0;
  for (const DataType type : all_data_types()) integers += is_integer(type) ? 1 : 0;
  CHECK(integers == 6);
  CHECK(is_integer(DataType::uint64));
  CHECK_FALSE(is_integer(DataType::float16));
}
