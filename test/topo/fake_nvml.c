/* An NVML of the tests' own: the machine that FAKE_NVML names. "pair": two GPUs joined by 4 links, a fifth of the first is down;
   "switched": four GPUs, each with 18 links to a switch that has no address; "mute": nothing can be asked; "one lost": four, of which the
   second can't. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { success = 0, invalid = 2, not_supported = 3, unknown = 999 };

struct pci {
  char legacy_id[16];
  unsigned domain, bus, device, ids, subsystem;
  char id[32];
};

static int is(const char* machine) { return strcmp(getenv("FAKE_NVML"), machine) == 0; }
static unsigned number(void* device) { return (unsigned)(size_t)device - 1; }
static void name(struct pci* pci, unsigned gpu) { snprintf(pci->id, sizeof pci->id, "00000000:%02X:00.0", 0x1b + 0x10 * gpu); }

int nvmlInit_v2(void) { return is("mute") ? unknown : success; }
int nvmlShutdown(void) { return success; }
const char* nvmlErrorString(int result) { return result == unknown ? "the driver is not in the mood" : "?"; }
int nvmlDeviceGetCount_v2(unsigned* count) { return *count = is("pair") ? 2 : 4, success; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (is("one lost") && index == 1) return unknown;
  return *device = (void*)(size_t)(index + 1), success;
}
int nvmlDeviceGetPciInfo_v3(void* device, struct pci* pci) { return name(pci, number(device)), success; }
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  (void)device;
  return *major = 9, *minor = 0, success;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* up) {
  (void)device;
  if (link >= (is("pair") ? 5u : 18u)) return invalid;
  return *up = link < 4 || is("switched"), success;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, struct pci* pci) {
  (void)link;
  if (is("switched")) return not_supported;
  return name(pci, 1 - number(device)), success;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, unsigned link, int* type) {
  (void)device, (void)link;
  return *type = is("pair") ? 0 : 2, success;
}
