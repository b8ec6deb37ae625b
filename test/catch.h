// Catch2 of Debian 12 (2.13) and version 3 differ in the header's place only, for what gyre's tests use.
#pragma once
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
