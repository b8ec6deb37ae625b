// A libucp.so.0 that can't be used: it tells its version and has nothing else, and says when it is loaded, and into how many threads.
#include <cstdio>
#include <filesystem>
#include <iterator>

extern "C" __attribute__((visibility("default"))) void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release);

void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release) {
  *major = 1;
  *minor = FAKE_MINOR;
  *release = 0;
}

__attribute__((constructor)) static void say() {
  const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  std::fprintf(stderr, "UCX is loaded beside %td other threads\n", threads - 1);
}
