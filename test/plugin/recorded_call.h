// A call of NCCL's interface in words, the same by whoever makes it and by the NCCL that hears it: its name, and each argument's bytes.
#pragma once
#include <cstdio>
#include <cstring>
#include <string>

namespace gyre::test {

template <class T>
std::string recorded(const T& argument) {
  unsigned char bytes[sizeof argument];
  std::memcpy(bytes, &argument, sizeof argument);
  std::string text = " ";
  for (const unsigned char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

template <class... A>
std::string recorded_call(const char* name, const A&... arguments) {
  return (std::string(name) + ... + recorded(arguments));
}

}  // namespace gyre::test
