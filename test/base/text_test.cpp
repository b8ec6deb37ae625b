#include "base/text.h"

#include <array>

#include "test/catch.h"

using namespace gyre;

TEST_CASE("a number is digits only and must fit 64 bits") {
  CHECK(parse_number("0") == 0);
  CHECK(parse_number("007") == 7);
  CHECK(parse_number("18446744073709551615") == UINT64_MAX);
  for (const char* wrong : {"", " 1", "1 ", "+1", "-1", "1.5", "0x10", "1K", "18446744073709551616"}) {
    INFO(wrong);
    CHECK_FALSE(parse_number(wrong));
  }
}

TEST_CASE("bytes take K, M and G in either case, with or without a B") {
  CHECK(parse_bytes("8") == 8);
  CHECK(parse_bytes("8b") == 8);
  for (const char* text : {"4K", "4k", "4KB", "4kb", "4kB"}) CHECK(parse_bytes(text) == 4096);
  CHECK(parse_bytes("3M") == 3 << 20);
  CHECK(parse_bytes("2G") == uint64_t{2} << 30);
  CHECK(parse_bytes("17179869183G") == uint64_t{17179869183} << 30);
  CHECK(parse_bytes("1.5M") == 3 << 19);
  CHECK(parse_bytes("0.25kb") == 256);
  CHECK(parse_bytes("0.1K") == 102);  // whole bytes
  CHECK(parse_bytes("17179869183.999999999G") == UINT64_MAX - 1);
  for (const char* wrong :
       {"", "B", "K", "KB", "1T", "1KK", "1BK", "1 K", "-1K", "17179869184G", "1.5", ".5K", "1.K", "1.5.5K", "1.-5K", "1.0000000001G"}) {
    INFO(wrong);
    CHECK_FALSE(parse_bytes(wrong));
  }
}

TEST_CASE("a grid is extents with x between them") {
  CHECK(*parse_grid("8") == std::vector{8});
  CHECK(*parse_grid("4x2") == std::vector{4, 2});
  CHECK(*parse_grid("2x2x2147483647") == std::vector{2, 2, 2147483647});
  for (const char* wrong : {"", "x", "4x", "x2", "4xx2", "4x2x", "4y2", "0x8", "-4x-2", "4 x 2", "2147483648"}) {
    INFO(wrong);
    REQUIRE_FALSE(parse_grid(wrong));
    CHECK(parse_grid(wrong).error().what == "must be extents such as 4x2, whose product is the number of ranks");
  }
}

TEST_CASE("what a line for people carries of a foreign text is short, and printable") {
  CHECK(printable("", 3).empty());
  CHECK(printable("abc", 3) == "abc");
  CHECK(printable("abcd", 3) == "abc…");
  CHECK(printable(" \x1b[1m\r\n\t~\x7f\xc3\xbc", 20) == " ?[1m???~???");
}

TEST_CASE("the nearest word is the one with the fewest changes, and none where all are far") {
  constexpr std::array<std::string_view, 4> words{"auto", "ring", "naive", "one_shot"};
  CHECK(nearest("ring", words) == "ring");
  CHECK(nearest("rign", words) == "ring");
  CHECK(nearest("oneshot", words) == "one_shot");
  CHECK(nearest("nave", words) == "naive");
  CHECK(nearest("butterfly", words).empty());
  CHECK(nearest("ring", {}).empty());
}
