// A libucp.so.0 that can't be used: it tells its version and has nothing else.
extern "C" __attribute__((visibility("default"))) void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release);

void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release) {
  *major = 1;
  *minor = FAKE_MINOR;
  *release = 0;
}
