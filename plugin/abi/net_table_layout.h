/* Sizes and offsets of NCCL's net plugin tables on LP64, as measured on NCCL's own releases. A test includes this from C and from C++. */
#pragma once
#include <assert.h>
#include <stddef.h>

#include "plugin/abi/net_table.h"

#define GYRE_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type " has another size than NCCL's")
#define GYRE_AT(type, field, bytes) static_assert(offsetof(type, field) == (bytes), #type "'s " #field " is not where NCCL has it")

GYRE_SIZE(ncclNet_v5_t, 128);
GYRE_AT(ncclNet_v5_t, name, 0);
GYRE_AT(ncclNet_v5_t, init, 8);
GYRE_AT(ncclNet_v5_t, devices, 16);
GYRE_AT(ncclNet_v5_t, getProperties, 24);
GYRE_AT(ncclNet_v5_t, listen, 32);
GYRE_AT(ncclNet_v5_t, connect, 40);
GYRE_AT(ncclNet_v5_t, accept, 48);
GYRE_AT(ncclNet_v5_t, regMr, 56);
GYRE_AT(ncclNet_v5_t, deregMr, 64);
GYRE_AT(ncclNet_v5_t, isend, 72);
GYRE_AT(ncclNet_v5_t, irecv, 80);
GYRE_AT(ncclNet_v5_t, iflush, 88);
GYRE_AT(ncclNet_v5_t, test, 96);
GYRE_AT(ncclNet_v5_t, closeSend, 104);
GYRE_AT(ncclNet_v5_t, closeRecv, 112);
GYRE_AT(ncclNet_v5_t, closeListen, 120);

GYRE_SIZE(ncclNet_v6_t, 136);
GYRE_AT(ncclNet_v6_t, name, 0);
GYRE_AT(ncclNet_v6_t, init, 8);
GYRE_AT(ncclNet_v6_t, devices, 16);
GYRE_AT(ncclNet_v6_t, getProperties, 24);
GYRE_AT(ncclNet_v6_t, listen, 32);
GYRE_AT(ncclNet_v6_t, connect, 40);
GYRE_AT(ncclNet_v6_t, accept, 48);
GYRE_AT(ncclNet_v6_t, regMr, 56);
GYRE_AT(ncclNet_v6_t, regMrDmaBuf, 64);
GYRE_AT(ncclNet_v6_t, deregMr, 72);
GYRE_AT(ncclNet_v6_t, isend, 80);
GYRE_AT(ncclNet_v6_t, irecv, 88);
GYRE_AT(ncclNet_v6_t, iflush, 96);
GYRE_AT(ncclNet_v6_t, test, 104);
GYRE_AT(ncclNet_v6_t, closeSend, 112);
GYRE_AT(ncclNet_v6_t, closeRecv, 120);
GYRE_AT(ncclNet_v6_t, closeListen, 128);

GYRE_SIZE(ncclNet_v7_t, 152);
GYRE_AT(ncclNet_v7_t, name, 0);
GYRE_AT(ncclNet_v7_t, init, 8);
GYRE_AT(ncclNet_v7_t, devices, 16);
GYRE_AT(ncclNet_v7_t, getProperties, 24);
GYRE_AT(ncclNet_v7_t, listen, 32);
GYRE_AT(ncclNet_v7_t, connect, 40);
GYRE_AT(ncclNet_v7_t, accept, 48);
GYRE_AT(ncclNet_v7_t, regMr, 56);
GYRE_AT(ncclNet_v7_t, regMrDmaBuf, 64);
GYRE_AT(ncclNet_v7_t, deregMr, 72);
GYRE_AT(ncclNet_v7_t, isend, 80);
GYRE_AT(ncclNet_v7_t, irecv, 88);
GYRE_AT(ncclNet_v7_t, iflush, 96);
GYRE_AT(ncclNet_v7_t, test, 104);
GYRE_AT(ncclNet_v7_t, closeSend, 112);
GYRE_AT(ncclNet_v7_t, closeRecv, 120);
GYRE_AT(ncclNet_v7_t, closeListen, 128);
GYRE_AT(ncclNet_v7_t, getDeviceMr, 136);
GYRE_AT(ncclNet_v7_t, irecvConsumed, 144);

GYRE_SIZE(ncclNet_v8_t, 152);
GYRE_AT(ncclNet_v8_t, name, 0);
GYRE_AT(ncclNet_v8_t, init, 8);
GYRE_AT(ncclNet_v8_t, devices, 16);
GYRE_AT(ncclNet_v8_t, getProperties, 24);
GYRE_AT(ncclNet_v8_t, listen, 32);
GYRE_AT(ncclNet_v8_t, connect, 40);
GYRE_AT(ncclNet_v8_t, accept, 48);
GYRE_AT(ncclNet_v8_t, regMr, 56);
GYRE_AT(ncclNet_v8_t, regMrDmaBuf, 64);
GYRE_AT(ncclNet_v8_t, deregMr, 72);
GYRE_AT(ncclNet_v8_t, isend, 80);
GYRE_AT(ncclNet_v8_t, irecv, 88);
GYRE_AT(ncclNet_v8_t, iflush, 96);
GYRE_AT(ncclNet_v8_t, test, 104);
GYRE_AT(ncclNet_v8_t, closeSend, 112);
GYRE_AT(ncclNet_v8_t, closeRecv, 120);
GYRE_AT(ncclNet_v8_t, closeListen, 128);
GYRE_AT(ncclNet_v8_t, getDeviceMr, 136);
GYRE_AT(ncclNet_v8_t, irecvConsumed, 144);

GYRE_SIZE(ncclNet_v9_t, 160);
GYRE_AT(ncclNet_v9_t, name, 0);
GYRE_AT(ncclNet_v9_t, init, 8);
GYRE_AT(ncclNet_v9_t, devices, 16);
GYRE_AT(ncclNet_v9_t, getProperties, 24);
GYRE_AT(ncclNet_v9_t, listen, 32);
GYRE_AT(ncclNet_v9_t, connect, 40);
GYRE_AT(ncclNet_v9_t, accept, 48);
GYRE_AT(ncclNet_v9_t, regMr, 56);
GYRE_AT(ncclNet_v9_t, regMrDmaBuf, 64);
GYRE_AT(ncclNet_v9_t, deregMr, 72);
GYRE_AT(ncclNet_v9_t, isend, 80);
GYRE_AT(ncclNet_v9_t, irecv, 88);
GYRE_AT(ncclNet_v9_t, iflush, 96);
GYRE_AT(ncclNet_v9_t, test, 104);
GYRE_AT(ncclNet_v9_t, closeSend, 112);
GYRE_AT(ncclNet_v9_t, closeRecv, 120);
GYRE_AT(ncclNet_v9_t, closeListen, 128);
GYRE_AT(ncclNet_v9_t, getDeviceMr, 136);
GYRE_AT(ncclNet_v9_t, irecvConsumed, 144);
GYRE_AT(ncclNet_v9_t, makeVDevice, 152);

GYRE_SIZE(ncclNet_v10_t, 160);
GYRE_AT(ncclNet_v10_t, name, 0);
GYRE_AT(ncclNet_v10_t, init, 8);
GYRE_AT(ncclNet_v10_t, devices, 16);
GYRE_AT(ncclNet_v10_t, getProperties, 24);
GYRE_AT(ncclNet_v10_t, listen, 32);
GYRE_AT(ncclNet_v10_t, connect, 40);
GYRE_AT(ncclNet_v10_t, accept, 48);
GYRE_AT(ncclNet_v10_t, regMr, 56);
GYRE_AT(ncclNet_v10_t, regMrDmaBuf, 64);
GYRE_AT(ncclNet_v10_t, deregMr, 72);
GYRE_AT(ncclNet_v10_t, isend, 80);
GYRE_AT(ncclNet_v10_t, irecv, 88);
GYRE_AT(ncclNet_v10_t, iflush, 96);
GYRE_AT(ncclNet_v10_t, test, 104);
GYRE_AT(ncclNet_v10_t, closeSend, 112);
GYRE_AT(ncclNet_v10_t, closeRecv, 120);
GYRE_AT(ncclNet_v10_t, closeListen, 128);
GYRE_AT(ncclNet_v10_t, getDeviceMr, 136);
GYRE_AT(ncclNet_v10_t, irecvConsumed, 144);
GYRE_AT(ncclNet_v10_t, makeVDevice, 152);

GYRE_SIZE(ncclNet_v11_t, 176);
GYRE_AT(ncclNet_v11_t, name, 0);
GYRE_AT(ncclNet_v11_t, init, 8);
GYRE_AT(ncclNet_v11_t, devices, 16);
GYRE_AT(ncclNet_v11_t, getProperties, 24);
GYRE_AT(ncclNet_v11_t, listen, 32);
GYRE_AT(ncclNet_v11_t, connect, 40);
GYRE_AT(ncclNet_v11_t, accept, 48);
GYRE_AT(ncclNet_v11_t, regMr, 56);
GYRE_AT(ncclNet_v11_t, regMrDmaBuf, 64);
GYRE_AT(ncclNet_v11_t, deregMr, 72);
GYRE_AT(ncclNet_v11_t, isend, 80);
GYRE_AT(ncclNet_v11_t, irecv, 88);
GYRE_AT(ncclNet_v11_t, iflush, 96);
GYRE_AT(ncclNet_v11_t, test, 104);
GYRE_AT(ncclNet_v11_t, closeSend, 112);
GYRE_AT(ncclNet_v11_t, closeRecv, 120);
GYRE_AT(ncclNet_v11_t, closeListen, 128);
GYRE_AT(ncclNet_v11_t, getDeviceMr, 136);
GYRE_AT(ncclNet_v11_t, irecvConsumed, 144);
GYRE_AT(ncclNet_v11_t, makeVDevice, 152);
GYRE_AT(ncclNet_v11_t, finalize, 160);
GYRE_AT(ncclNet_v11_t, setNetAttr, 168);

GYRE_SIZE(ncclNet_v12_t, 176);
GYRE_AT(ncclNet_v12_t, name, 0);
GYRE_AT(ncclNet_v12_t, init, 8);
GYRE_AT(ncclNet_v12_t, devices, 16);
GYRE_AT(ncclNet_v12_t, getProperties, 24);
GYRE_AT(ncclNet_v12_t, listen, 32);
GYRE_AT(ncclNet_v12_t, connect, 40);
GYRE_AT(ncclNet_v12_t, accept, 48);
GYRE_AT(ncclNet_v12_t, regMr, 56);
GYRE_AT(ncclNet_v12_t, regMrDmaBuf, 64);
GYRE_AT(ncclNet_v12_t, deregMr, 72);
GYRE_AT(ncclNet_v12_t, isend, 80);
GYRE_AT(ncclNet_v12_t, irecv, 88);
GYRE_AT(ncclNet_v12_t, iflush, 96);
GYRE_AT(ncclNet_v12_t, test, 104);
GYRE_AT(ncclNet_v12_t, closeSend, 112);
GYRE_AT(ncclNet_v12_t, closeRecv, 120);
GYRE_AT(ncclNet_v12_t, closeListen, 128);
GYRE_AT(ncclNet_v12_t, getDeviceMr, 136);
GYRE_AT(ncclNet_v12_t, irecvConsumed, 144);
GYRE_AT(ncclNet_v12_t, makeVDevice, 152);
GYRE_AT(ncclNet_v12_t, finalize, 160);
GYRE_AT(ncclNet_v12_t, setNetAttr, 168);

#undef GYRE_SIZE
#undef GYRE_AT
