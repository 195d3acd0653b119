// An nvJitLink that links nothing. What it makes is a text that says what it was given, and begins as an ELF file does, or with -ptx as PTX. It
// ends the process where a linker is used on another thread than it was made on. An input with the word unresolved cannot be linked.
//
//	VERSION  the release, as 12040; before 12.3 it lacks plain names
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION
#define VERSION 12040
#endif

#if VERSION < 12030
#define nvJitLinkCreate __nvJitLinkCreate
#define nvJitLinkVersion __nvJitLinkVersion
#endif

enum { OK, UNRECOGNIZED_OPTION, MISSING_ARCH, INVALID_INPUT, PTX_COMPILE, NVVM_COMPILE, INTERNAL };

typedef struct {
	pthread_t thread;
	int ptx, linked;
	char code[1 << 17], errors[4096], info[4096];
} linker;

static int live;
int fake_live(void) { return live; }

static linker *own(linker *l)
{
	if (!pthread_equal(l->thread, pthread_self())) abort();
	return l;
}

int nvJitLinkVersion(unsigned *major, unsigned *minor) { *major = VERSION / 1000, *minor = VERSION % 1000 / 10; return OK; }

int nvJitLinkCreate(linker **out, uint32_t n, const char **options)
{
	linker *l = calloc(1, sizeof *l);
	int arch = 0, lto = 0;
	size_t at = 0;
	for (uint32_t i = 0; i < n; i++) {
		at += snprintf(l->code + at, sizeof l->code - at, "link %s\n", options[i]);
		arch |= !strncmp(options[i], "-arch=sm_", 9), lto |= !strcmp(options[i], "-lto"), l->ptx |= !strcmp(options[i], "-ptx");
		if (strstr(options[i], "bogus")) {
			free(l);
			return UNRECOGNIZED_OPTION;
		}
		if (!strcmp(options[i], "-verbose")) strcpy(l->info, "info    : it was linked\n");
	}
	if (!arch || !lto) {
		free(l);
		return MISSING_ARCH;
	}
	l->thread = pthread_self();
	*out = l;
	__atomic_fetch_add(&live, 1, __ATOMIC_SEQ_CST);
	return OK;
}

int nvJitLinkDestroy(linker **l)
{
	free(own(*l));
	*l = 0;
	__atomic_fetch_sub(&live, 1, __ATOMIC_SEQ_CST);
	return OK;
}

int nvJitLinkAddData(linker *l, int type, const void *data, size_t size, const char *name)
{
	if (type != 3 || !size || memcmp(data, "name ", 5)) {
		snprintf(own(l)->errors, sizeof l->errors, "ERROR 1: bad input: does not match type NVJITLINK_INPUT_LTOIR%s\n", name);
		return INVALID_INPUT;
	}
	size_t at = strlen(own(l)->code);
	snprintf(l->code + at, sizeof l->code - at, "input %s {\n%.*s\n}\n", name, (int)size, (const char *)data);
	if (strstr(l->code + at, "unresolved"))
		snprintf(l->errors, sizeof l->errors, "ERROR in nvvmCompileProgram: NVVM_ERROR_COMPILATION\n%s: link error: error: symbol multiply defined!\n\n", name);
	return OK;
}

int nvJitLinkAddFile(linker *l, int type, const char *name) { return INVALID_INPUT; }
int nvJitLinkComplete(linker *l) { own(l)->linked = !*l->errors; return l->linked ? OK : NVVM_COMPILE; }

int nvJitLinkGetLinkedCubinSize(linker *l, size_t *n) { *n = 4 + strlen(own(l)->code); return l->linked && !l->ptx ? OK : INTERNAL; }
int nvJitLinkGetLinkedCubin(linker *l, char *out) { memcpy(out, "\x7f" "ELF", 4); memcpy(out + 4, own(l)->code, strlen(l->code)); return OK; }
int nvJitLinkGetLinkedPtxSize(linker *l, size_t *n) { *n = 10 + strlen(own(l)->code); return l->linked && l->ptx ? OK : INVALID_INPUT; }
int nvJitLinkGetLinkedPtx(linker *l, char *out) { sprintf(out, ".version\n%s", own(l)->code); return OK; }
int nvJitLinkGetErrorLogSize(linker *l, size_t *n) { *n = *own(l)->errors ? strlen(l->errors) + 1 : 0; return OK; }
int nvJitLinkGetErrorLog(linker *l, char *out) { strcpy(out, own(l)->errors); return OK; }
int nvJitLinkGetInfoLogSize(linker *l, size_t *n) { *n = *own(l)->info ? strlen(l->info) + 1 : 0; return OK; }
int nvJitLinkGetInfoLog(linker *l, char *out) { strcpy(out, own(l)->info); return OK; }
