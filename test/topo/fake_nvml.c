/* An NVML of the tests' own: the machine that FAKE_NVML names. "pair": two GPUs joined by 4 links, a fifth of the first is down, by a
   driver that knows one speed of all; "switched": four GPUs, each with 18 links to a switch that has no address, one of them slower;
   "superchips": the same, each with 10 links to its processor, one of which is down; "mute": nothing can be asked; "one lost": four, of
   which the second can't, and no field. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { success = 0, invalid = 2, not_supported = 3, unknown = 999 };

struct pci {
  char legacy_id[16];
  unsigned domain, bus, device, ids, subsystem;
  char id[32];
};

struct field {
  unsigned id, scope;
  long long timestamp, latency;
  int type, result;
  union {
    double d;
    unsigned u;
    unsigned long long ull;
  } value;
};

static int is(const char* machine) { return strcmp(getenv("FAKE_NVML"), machine) == 0; }
static int switched(void) { return is("switched") || is("superchips"); }
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
  return *up = link < 4 || switched(), success;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, struct pci* pci) {
  (void)link;
  if (switched()) return not_supported;
  return name(pci, 1 - number(device)), success;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, unsigned link, int* type) {
  (void)device, (void)link;
  return *type = is("pair") ? 0 : 2, success;
}

static int whole(struct field* field, unsigned value) { return field->type = 1, field->value.u = value, success; }
static int answer(struct field* field) {
  switch (field->id) {
    case 90:
      return is("pair") ? whole(field, 25781) : not_supported;
    case 164:
      return switched() ? whole(field, field->scope == 5 ? 20000 : 26562) : not_supported;
    case 170:
      return is("superchips") ? whole(field, 10) : not_supported;
    case 171:
      return is("superchips") ? whole(field, field->scope != 3) : not_supported;
    case 172:
      return is("superchips") ? (field->type = 3, field->value.ull = 44712, success) : not_supported;
    default:
      return invalid;
  }
}
int nvmlDeviceGetFieldValues(void* device, int count, struct field* fields) {
  (void)device;
  if (is("one lost")) return unknown;
  for (int i = 0; i < count; ++i) {
    fields[i].value.ull = ~0ull; /* of which a whole number leaves the upper half */
    fields[i].result = answer(&fields[i]);
  }
  return success;
}
