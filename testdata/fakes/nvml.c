// An NVML of the fake CUDA driver's two GPUs, which are at 0000:3B:00.0 and 0000:3B:01.0, and of different NUMA nodes. Functions that a test does not need are
// those that the loader adds.
//
//	NVLINKS   how many NVLinks each has, to a switch
//	BROKEN    it cannot be started
//	XID       the first wait for events of each set returns this XID error
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef NVLINKS
#define NVLINKS 0
#endif

enum { OK, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9, TIMEOUT = 10 };
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char address[32]; } pciInfo;
_Static_assert(sizeof(pciInfo) == 68, "layout");

static int started;

#ifdef BROKEN
int nvmlInit_v2(void) { return DRIVER_NOT_LOADED; }
#else
int nvmlInit_v2(void) { started++; return OK; }
#endif
int nvmlShutdown(void) { started--; return OK; }
int nvmlSystemGetNVMLVersion(char *text, unsigned n) { snprintf(text, n, "13.580.95.05"); return OK; }

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device)
{
	unsigned domain, bus, slot;
	if (!started) return UNINITIALIZED;
	if (sscanf(address, "%x:%x:%x.0", &domain, &bus, &slot) != 3 || domain || bus != 0x3b || slot > 1) return NOT_FOUND;
	*device = (void *)(0x100ul + slot);
	return OK;
}

int nvmlDeviceGetPciInfo_v3(void *device, pciInfo *info)
{
	memset(info, 0, sizeof *info);
	info->bus = 0x3b, info->device = (unsigned)((unsigned long)device - 0x100);
	return OK;
}

int nvmlDeviceGetTopologyCommonAncestor(void *a, void *b, unsigned *level) { *level = a == b ? 0 : 50; return OK; }
int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active) { *active = 1; return NVLINKS == 0 ? NOT_SUPPORTED : link < NVLINKS ? OK : INVALID_ARGUMENT; }
int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, unsigned *kind) { *kind = 2; return OK; }

#ifdef XID
enum { XID_EVENT = 8 };
typedef struct { void *device; unsigned long long type, data; unsigned instance, part; } eventData;
_Static_assert(sizeof(eventData) == 32, "layout");
typedef struct { void *device; int told; } eventSet;

int nvmlDeviceGetSupportedEventTypes(void *device, unsigned long long *types) { *types = XID_EVENT; return OK; }
int nvmlEventSetCreate(eventSet **set) { *set = calloc(1, sizeof **set); return OK; }
int nvmlEventSetFree(eventSet *set) { free(set); return OK; }

int nvmlDeviceRegisterEvents(void *device, unsigned long long types, eventSet *set)
{
	if (types != XID_EVENT) return INVALID_ARGUMENT;
	set->device = device;
	return OK;
}

int nvmlEventSetWait_v2(eventSet *set, eventData *event, unsigned timeout)
{
	if (set->told) {
		usleep(1000 * timeout);
		return TIMEOUT;
	}
	set->told = 1;
	*event = (eventData){ set->device, XID_EVENT, XID, ~0u, ~0u };
	return OK;
}
#endif
