// A hipRTC that compiles nothing, with the habits of HIP 5.2's: it calls every source CompileSource, in a folder of the moment, and refuses
// empty texts. What it makes of a program is a text that says what it was given, and begins as an ELF file does. A source with the word wrong
// has an error in line 2 and one in the header bad.h, one with the word odd has a warning, and with the option -fgpu-rdc it makes nothing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK, INVALID_INPUT = 3, INVALID_PROGRAM, INVALID_OPTION, COMPILATION, NO_NAMES_AFTER = 8, NO_NAMES_BEFORE, NOT_VALID };

#define DIR "/tmp/comgr-1f2e3d/"

typedef struct {
	char text[1 << 16], log[4096], code[1 << 16], names[16][256], lowered[16][272];
	int numNames, compiled, bitcode;
} program;

static int live;
int fake_live(void) { return live; }

int hiprtcVersion(int *major, int *minor) { *major = 9, *minor = 0; return OK; }
const char *hiprtcGetErrorString(int r) { return r == OK ? "HIPRTC_SUCCESS" : "HIPRTC_ERROR"; }

int hiprtcCreateProgram(program **p, const char *src, const char *name, int n, const char **headers, const char **names)
{
	if (!*src) return INVALID_INPUT;
	for (int i = 0; i < n; i++)
		if (!*headers[i] || !*names[i]) return INVALID_INPUT;
	program *q = *p = calloc(1, sizeof *q);
	snprintf(q->text, sizeof q->text, "%s", src);
	size_t at = snprintf(q->code, sizeof q->code, "name %s\n", name);
	for (int i = 0; i < n; i++)
		at += snprintf(q->code + at, sizeof q->code - at, "header %s: %s\n", names[i], headers[i]);
	__atomic_fetch_add(&live, 1, __ATOMIC_SEQ_CST);
	return OK;
}

int hiprtcDestroyProgram(program **p)
{
	if (!*p) abort();
	free(*p);
	*p = 0;
	__atomic_fetch_sub(&live, 1, __ATOMIC_SEQ_CST);
	return OK;
}

int hiprtcAddNameExpression(program *p, const char *name)
{
	if (p->compiled) return NO_NAMES_AFTER;
	if (p->numNames == 16) return INVALID_INPUT;
	snprintf(p->names[p->numNames], sizeof *p->names, "%s", name);
	snprintf(p->lowered[p->numNames], sizeof *p->lowered, "_Z_%s", name);
	p->numNames++;
	return OK;
}

int hiprtcCompileProgram(program *p, int n, const char **options)
{
	size_t at = strlen(p->code);
	int arch = 0;
	p->compiled = 1;
	for (int i = 0; i < n; i++) {
		at += snprintf(p->code + at, sizeof p->code - at, "option %s\n", options[i]);
		arch |= !strncmp(options[i], "--offload-arch=gfx", 18) || !strncmp(options[i], "--gpu-architecture=gfx", 22);
		p->bitcode |= !strcmp(options[i], "-fgpu-rdc");
		if (strstr(options[i], "bogus")) {
			snprintf(p->log, sizeof p->log, "error: unsupported option '%s'\n1 error generated when compiling for gfx90a.\n", options[i]);
			return COMPILATION;
		}
	}
	if (!arch) {
		snprintf(p->log, sizeof p->log, "Error: Please provide architecture for which code is to be generated.\n");
		return COMPILATION;
	}
	if (strstr(p->text, "odd"))
		snprintf(p->log, sizeof p->log, DIR "input/CompileSource:1:5: warning: unused variable 'odd' [-Wunused-variable]\nint odd;\n    ^\n1 warning generated when compiling for gfx90a.\n");
	if (strstr(p->text, "wrong")) {
		at = strlen(p->log);
		snprintf(p->log + at, sizeof p->log - at, "In file included from " DIR "input/CompileSource:1:\n"
			DIR "include/sub/bad.h:1:1: error: unknown type name 'bad'\nbad;\n^\n"
			DIR "input/CompileSource:2:6: error: use of undeclared identifier 'wrong'\n*x = wrong;\n     ^\n2 errors generated when compiling for gfx90a.\n");
		return COMPILATION;
	}
	return OK;
}

int hiprtcGetProgramLogSize(program *p, size_t *n) { *n = *p->log ? strlen(p->log) + 1 : 0; return OK; }
int hiprtcGetProgramLog(program *p, char *log) { strcpy(log, p->log); return OK; }

int hiprtcGetLoweredName(program *p, const char *name, const char **out)
{
	if (!p->compiled) return NO_NAMES_BEFORE;
	for (int i = 0; i < p->numNames; i++)
		if (!strcmp(p->names[i], name) && strstr(p->text, "none") == 0) {
			*out = p->lowered[i];
			return OK;
		}
	return NOT_VALID;
}

int hiprtcGetCodeSize(program *p, size_t *n) { *n = p->bitcode ? 0 : 4 + strlen(p->code); return OK; }
int hiprtcGetCode(program *p, char *out) { memcpy(out, "\x7f" "ELF", 4); memcpy(out + 4, p->code, strlen(p->code)); return OK; }
