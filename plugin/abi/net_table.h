/* NCCL's table of a net plugin, versions 5 to 12: one struct of functions each, in NCCL's order. NCCL looks for objects named
 * ncclNetPlugin_v5 to _v12 and takes the newest that it knows, so a plugin has one of each.
 * Plain C; they must not know gyre. */
#pragma once
#include "plugin/abi/net_slots.h"

typedef struct {
  const char* name;
  ncclNetInit_v5_fn init;
  ncclNetDevices_v5_fn devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v5_t* props);
  ncclNetListen_v5_fn listen;
  ncclNetConnect_v5_fn connect;
  ncclNetAccept_v5_fn accept;
  ncclNetRegMr_v5_fn regMr;
  ncclNetDeregMr_v5_fn deregMr;
  ncclNetIsend_v5_fn isend;
  ncclNetIrecv_v5_fn irecv;
  ncclNetIflush_v5_fn iflush;
  ncclNetTest_v5_fn test;
  ncclNetClose_v5_fn closeSend;
  ncclNetClose_v5_fn closeRecv;
  ncclNetClose_v5_fn closeListen;
} ncclNet_v5_t;

typedef struct {
  const char* name;
  ncclNetInit_v5_fn init;
  ncclNetDevices_v5_fn devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v6_t* props);
  ncclNetListen_v5_fn listen;
  ncclNetConnect_v5_fn connect;
  ncclNetAccept_v5_fn accept;
  ncclNetRegMr_v5_fn regMr;
  ncclNetRegMrDmaBuf_v6_fn regMrDmaBuf;
  ncclNetDeregMr_v5_fn deregMr;
  ncclNetIsend_v5_fn isend;
  ncclNetIrecv_v5_fn irecv;
  ncclNetIflush_v5_fn iflush;
  ncclNetTest_v5_fn test;
  ncclNetClose_v5_fn closeSend;
  ncclNetClose_v5_fn closeRecv;
  ncclNetClose_v5_fn closeListen;
} ncclNet_v6_t;

typedef struct {
  const char* name;
  ncclNetInit_v5_fn init;
  ncclNetDevices_v5_fn devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v7_t* props);
  ncclNetListen_v5_fn listen;
  ncclNetConnect_v7_fn connect;
  ncclNetAccept_v7_fn accept;
  ncclNetRegMr_v5_fn regMr;
  ncclNetRegMrDmaBuf_v6_fn regMrDmaBuf;
  ncclNetDeregMr_v5_fn deregMr;
  ncclNetIsend_v5_fn isend;
  ncclNetIrecv_v5_fn irecv;
  ncclNetIflush_v5_fn iflush;
  ncclNetTest_v5_fn test;
  ncclNetClose_v5_fn closeSend;
  ncclNetClose_v5_fn closeRecv;
  ncclNetClose_v5_fn closeListen;
  ncclNetGetDeviceMr_v7_fn getDeviceMr;
  ncclNetIrecvConsumed_v7_fn irecvConsumed;
} ncclNet_v7_t;

typedef struct {
  const char* name;
  ncclNetInit_v5_fn init;
  ncclNetDevices_v5_fn devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v8_t* props);
  ncclNetListen_v5_fn listen;
  ncclNetConnect_v7_fn connect;
  ncclNetAccept_v7_fn accept;
  ncclNetRegMr_v8_fn regMr;
  ncclNetRegMrDmaBuf_v6_fn regMrDmaBuf;
  ncclNetDeregMr_v5_fn deregMr;
  ncclNetIsend_v5_fn isend;
  ncclNetIrecv_v5_fn irecv;
  ncclNetIflush_v5_fn iflush;
  ncclNetTest_v5_fn test;
  ncclNetClose_v5_fn closeSend;
  ncclNetClose_v5_fn closeRecv;
  ncclNetClose_v5_fn closeListen;
  ncclNetGetDeviceMr_v7_fn getDeviceMr;
  ncclNetIrecvConsumed_v7_fn irecvConsumed;
} ncclNet_v8_t;

typedef struct {
  const char* name;
  ncclNetInit_v5_fn init;
  ncclNetDevices_v5_fn devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v9_t* props);
  ncclNetListen_v5_fn listen;
  ncclNetConnect_v7_fn connect;
  ncclNetAccept_v7_fn accept;
  ncclNetRegMr_v8_fn regMr;
  ncclNetRegMrDmaBuf_v6_fn regMrDmaBuf;
  ncclNetDeregMr_v5_fn deregMr;
  ncclNetIsend_v9_fn isend;
  ncclNetIrecv_v9_fn irecv;
  ncclNetIflush_v5_fn iflush;
  ncclNetTest_v5_fn test;
  ncclNetClose_v5_fn closeSend;
  ncclNetClose_v5_fn closeRecv;
  ncclNetClose_v5_fn closeListen;
  ncclNetGetDeviceMr_v7_fn getDeviceMr;
  ncclNetIrecvConsumed_v7_fn irecvConsumed;
  ncclNetMakeVDevice_v9_fn makeVDevice;
} ncclNet_v9_t;

typedef struct {
  const char* name;
  ncclNetInit_v10_fn init;
  ncclNetDevices_v5_fn devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v10_t* props);
  ncclNetListen_v5_fn listen;
  ncclNetConnect_v10_fn connect;
  ncclNetAccept_v7_fn accept;
  ncclNetRegMr_v8_fn regMr;
  ncclNetRegMrDmaBuf_v6_fn regMrDmaBuf;
  ncclNetDeregMr_v5_fn deregMr;
  ncclNetIsend_v10_fn isend;
  ncclNetIrecv_v10_fn irecv;
  ncclNetIflush_v5_fn iflush;
  ncclNetTest_v5_fn test;
  ncclNetClose_v5_fn closeSend;
  ncclNetClose_v5_fn closeRecv;
  ncclNetClose_v5_fn closeListen;
  ncclNetGetDeviceMr_v7_fn getDeviceMr;
  ncclNetIrecvConsumed_v7_fn irecvConsumed;
  ncclNetMakeVDevice_v9_fn makeVDevice;
} ncclNet_v10_t;

typedef struct {
  const char* name;
  ncclNetInit_v11_fn init;
  ncclNetDevices_v5_fn devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v11_t* props);
  ncclNetListen_v11_fn listen;
  ncclNetConnect_v11_fn connect;
  ncclNetAccept_v7_fn accept;
  ncclNetRegMr_v8_fn regMr;
  ncclNetRegMrDmaBuf_v6_fn regMrDmaBuf;
  ncclNetDeregMr_v5_fn deregMr;
  ncclNetIsend_v10_fn isend;
  ncclNetIrecv_v10_fn irecv;
  ncclNetIflush_v5_fn iflush;
  ncclNetTest_v5_fn test;
  ncclNetClose_v5_fn closeSend;
  ncclNetClose_v5_fn closeRecv;
  ncclNetClose_v5_fn closeListen;
  ncclNetGetDeviceMr_v7_fn getDeviceMr;
  ncclNetIrecvConsumed_v7_fn irecvConsumed;
  ncclNetMakeVDevice_v9_fn makeVDevice;
  ncclNetFinalize_v11_fn finalize;
  ncclNetSetNetAttr_v11_fn setNetAttr;
} ncclNet_v11_t;

typedef struct {
  const char* name;
  ncclNetInit_v11_fn init;
  ncclNetDevices_v5_fn devices;
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v12_t* props);
  ncclNetListen_v11_fn listen;
  ncclNetConnect_v11_fn connect;
  ncclNetAccept_v7_fn accept;
  ncclNetRegMr_v8_fn regMr;
  ncclNetRegMrDmaBuf_v6_fn regMrDmaBuf;
  ncclNetDeregMr_v5_fn deregMr;
  ncclNetIsend_v10_fn isend;
  ncclNetIrecv_v10_fn irecv;
  ncclNetIflush_v5_fn iflush;
  ncclNetTest_v5_fn test;
  ncclNetClose_v5_fn closeSend;
  ncclNetClose_v5_fn closeRecv;
  ncclNetClose_v5_fn closeListen;
  ncclNetGetDeviceMr_v7_fn getDeviceMr;
  ncclNetIrecvConsumed_v7_fn irecvConsumed;
  ncclNetMakeVDevice_v12_fn makeVDevice;
  ncclNetFinalize_v11_fn finalize;
  ncclNetSetNetAttr_v11_fn setNetAttr;
} ncclNet_v12_t;
