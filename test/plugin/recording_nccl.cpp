// Plays a real NCCL that has every function that gyre knows, and only says what it is given (recorded_call.h), all of it successful.
#include <atomic>
#include <cstddef>
#include <type_traits>

#include "plugin/abi/nccl.h"
#include "test/plugin/fake_nccl_hooks.h"
#include "test/plugin/recorded_call.h"

#define SHOWN __attribute__((visibility("default")))

namespace {

FakeNcclHooks recording_hooks;

// What calls leave where they are told to.
template <class T>
void leave(const T&) {}
void leave(ncclComm_t* made) {
  static std::atomic<size_t> last{0};
  *made = reinterpret_cast<ncclComm_t>(0x1000 * ++last);
}
void leave(int* number) { *number = 22809; }  // a release, where that is asked

template <class R>
struct Recording {
  const char* name;
  template <class... A>
  R operator()(A... arguments) const {
    if (recording_hooks.say != nullptr) recording_hooks.say(gyre::test::recorded_call(name, arguments...).c_str());
    (leave(arguments), ...);
    if constexpr (std::is_same_v<R, const char*>) return "";
    return R();
  }
};

}  // namespace

extern "C" {
SHOWN FakeNcclHooks* fake_nccl_hooks() { return &recording_hooks; }
#define RECORDING(result, name, parameters, arguments) \
  SHOWN result name parameters { return Recording<result>{#name} arguments; }
NCCL_FUNCTIONS(RECORDING)
#undef RECORDING
}
