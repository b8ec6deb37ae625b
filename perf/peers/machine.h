// What the measurement asks of the machine: a clock, a buffer, a CPU to stay on, and whether something else had our CPU.
#pragma once
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "base/unique.h"

namespace gyre::peers {

inline double now_us() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Zeroed and touched memory of 4 KiB pages, page aligned; null when there is none. Lives until the process ends.
inline std::byte* touched_memory(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  std::memset(data, 0, bytes);
  return static_cast<std::byte*>(data);
}

/// Microseconds that this thread was ready to run and had to wait for a CPU, since it began; 0 where the kernel does not say.
inline double waited_for_cpu_us() {
  static const UniqueFd file(open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC));
  char text[96];
  const ssize_t length = pread(file.get(), text, sizeof text - 1, 0);
  if (length <= 0) return 0;
  text[length] = 0;
  double ran_ns = 0;
  double waited_ns = 0;
  if (std::sscanf(text, "%lf %lf", &ran_ns, &waited_ns) != 2) return 0;
  return waited_ns / 1e3;
}

inline int online_cpus() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

/// Keeps this thread on the index-th (modulo their number) of the CPUs it may use. Best effort: an unbound rank is slower, not wrong.
inline void stay_on_cpu(int index) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int left = index % CPU_COUNT(&allowed);
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

}  // namespace gyre::peers
