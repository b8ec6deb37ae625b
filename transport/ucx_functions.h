// The functions of UCX that gyre may call, each with its number of arguments; their types come from UCX's own headers. One more is one
// line here. All of the first list are in every UCX since 1.13.
#pragma once
#include <ucp/api/ucp.h>
#include <ucs/async/async_fwd.h>
#include <ucs/debug/log_def.h>
#include <uct/api/uct.h>

/// Without one of these a UCX can't be used.
#define GYRE_UCX_FUNCTIONS(F)      \
  F(ucp_cleanup, 1)                \
  F(ucp_config_modify, 3)          \
  F(ucp_config_print, 4)           \
  F(ucp_config_read, 3)            \
  F(ucp_config_release, 1)         \
  F(ucp_context_query, 2)          \
  F(ucp_ep_close_nbx, 2)           \
  F(ucp_ep_create, 3)              \
  F(ucp_ep_flush_nbx, 2)           \
  F(ucp_ep_rkey_unpack, 3)         \
  F(ucp_get_nbx, 6)                \
  F(ucp_get_version, 3)            \
  F(ucp_init_version, 5)           \
  F(ucp_mem_map, 3)                \
  F(ucp_mem_unmap, 2)              \
  F(ucp_request_cancel, 2)         \
  F(ucp_request_check_status, 1)   \
  F(ucp_request_free, 1)           \
  F(ucp_rkey_buffer_release, 1)    \
  F(ucp_rkey_destroy, 1)           \
  F(ucp_rkey_pack, 4)              \
  F(ucp_tag_msg_recv_nbx, 5)       \
  F(ucp_tag_probe_nb, 5)           \
  F(ucp_tag_recv_nbx, 6)           \
  F(ucp_tag_send_nbx, 5)           \
  F(ucp_tag_send_sync_nbx, 5)      \
  F(ucp_worker_arm, 1)             \
  F(ucp_worker_create, 3)          \
  F(ucp_worker_destroy, 1)         \
  F(ucp_worker_get_address, 3)     \
  F(ucp_worker_get_efd, 2)         \
  F(ucp_worker_progress, 1)        \
  F(ucp_worker_release_address, 2) \
  F(ucs_log_num_handlers, 0)       \
  F(ucs_log_pop_handler, 0)        \
  F(ucs_log_push_handler, 1)       \
  F(ucs_status_string, 1)

/// What networks are asked for. Their structs have no masks of fields: see load_ucx_devices().
#define GYRE_UCX_DEVICE_FUNCTIONS(F) \
  F(ucs_async_context_create, 2)     \
  F(ucs_async_context_destroy, 1)    \
  F(uct_component_query, 2)          \
  F(uct_config_release, 1)           \
  F(uct_iface_close, 1)              \
  F(uct_iface_open, 5)               \
  F(uct_iface_query, 2)              \
  F(uct_md_close, 1)                 \
  F(uct_md_config_read, 4)           \
  F(uct_md_iface_config_read, 5)     \
  F(uct_md_open, 4)                  \
  F(uct_md_query, 2)                 \
  F(uct_md_query_tl_resources, 3)    \
  F(uct_query_components, 2)         \
  F(uct_release_component_list, 1)   \
  F(uct_release_tl_resource_list, 1) \
  F(uct_worker_create, 3)            \
  F(uct_worker_destroy, 1)
