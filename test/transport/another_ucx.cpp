// A UCX that a program has beside gyre's: global symbols of UCX's names, from each of its libraries, all of which end the process. What
// they are called with is of no interest.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#define ANOTHER(name)                                            \
  extern "C" __attribute__((visibility("default"))) void name(); \
  void name() {                                                  \
    const char* text = "the other UCX's " #name " was called\n"; \
    if (write(2, text, std::strlen(text)) >= 0) std::abort();    \
  }

ANOTHER(ucp_cleanup)
ANOTHER(ucp_config_read)
ANOTHER(ucp_get_version)
ANOTHER(ucp_init_version)
ANOTHER(ucp_worker_create)
ANOTHER(ucp_worker_progress)
ANOTHER(uct_component_query)
ANOTHER(uct_component_register)
ANOTHER(uct_iface_open)
ANOTHER(uct_md_open)
ANOTHER(uct_query_components)
ANOTHER(uct_worker_create)
ANOTHER(ucs_async_context_init)
ANOTHER(ucs_class_malloc)
ANOTHER(ucs_free)
ANOTHER(ucs_log_dispatch)
ANOTHER(ucs_log_push_handler)
ANOTHER(ucs_malloc)
ANOTHER(ucs_mpool_get)
ANOTHER(ucs_status_string)
ANOTHER(ucs_sys_get_ns)
ANOTHER(ucm_set_event_handler)

/// What a program calls of it, so that it is linked.
extern "C" __attribute__((visibility("default"))) int another_ucx_is_here();
int another_ucx_is_here() { return 1; }
