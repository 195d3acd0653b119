// An NVRTC that compiles nothing. What it makes of a program is a text that says what it was given: machine code begins as an ELF file
// does, PTX with .version. A source with the word wrong has an error in line 2, one with the word odd has a warning, and with neither
// an option for virtual nor for real architectures it makes neither. With -dlto it makes the text alone, as LTO-IR. A header in angle
// brackets must be given by name, or be in a folder that an option -I names.
//
//	VERSION  the release, as 12040
//	ARCHS    the architectures that it knows
//	NO_LTO   lacks the functions for LTO-IR
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef VERSION
#define VERSION 12040
#endif
#ifndef ARCHS
#define ARCHS 75, 80, 90
#endif

enum { OK, INVALID_INPUT = 3, INVALID_PROGRAM, INVALID_OPTION, COMPILATION, NO_NAMES_AFTER = 8, NO_NAMES_BEFORE, NOT_VALID };

typedef struct {
	char text[1 << 16], name[256], log[4096], code[1 << 16], names[16][256], lowered[16][272], headers[16][256];
	int numHeaders, numNames, compiled, real, virtual, lto;
} program;

static int live;
int fake_live(void) { return live; }

static const int archs[] = {ARCHS};

int nvrtcVersion(int *major, int *minor) { *major = VERSION / 1000, *minor = VERSION % 1000 / 10; return OK; }
const char *nvrtcGetErrorString(int r) { return r == OK ? "NVRTC_SUCCESS" : "NVRTC_ERROR"; }
int nvrtcGetNumSupportedArchs(int *n) { *n = sizeof archs / sizeof *archs; return OK; }
int nvrtcGetSupportedArchs(int *a) { memcpy(a, archs, sizeof archs); return OK; }

int nvrtcCreateProgram(program **p, const char *src, const char *name, int n, const char **headers, const char **names)
{
	program *q = *p = calloc(1, sizeof *q);
	snprintf(q->text, sizeof q->text, "%s", src);
	snprintf(q->name, sizeof q->name, "%s", name);
	size_t at = snprintf(q->code, sizeof q->code, "name %s\n", name);
	for (int i = 0; i < n; i++) {
		at += snprintf(q->code + at, sizeof q->code - at, "header %s: %s\n", names[i], headers[i]);
		if (q->numHeaders < 16) snprintf(q->headers[q->numHeaders++], sizeof *q->headers, "%s", names[i]);
	}
	__atomic_fetch_add(&live, 1, __ATOMIC_SEQ_CST);
	return OK;
}

int nvrtcDestroyProgram(program **p)
{
	if (!p || !*p) return INVALID_PROGRAM;
	free(*p);
	*p = 0;
	__atomic_fetch_sub(&live, 1, __ATOMIC_SEQ_CST);
	return OK;
}

int nvrtcAddNameExpression(program *p, const char *name)
{
	if (p->compiled) return NO_NAMES_AFTER;
	if (p->numNames == 16) return INVALID_INPUT;
	snprintf(p->names[p->numNames], sizeof *p->names, "%s", name);
	snprintf(p->lowered[p->numNames], sizeof *p->lowered, "_Z_%s", name);
	p->numNames++;
	return OK;
}

int nvrtcCompileProgram(program *p, int n, const char **options)
{
	size_t at = strlen(p->code);
	p->compiled = 1;
	for (int i = 0; i < n; i++) {
		at += snprintf(p->code + at, sizeof p->code - at, "option %s\n", options[i]);
		p->real |= !!strstr(options[i], "=sm_");
		p->virtual |= !!strstr(options[i], "=compute_");
		if (!strcmp(options[i], "-dlto") && p->lto++) return INVALID_OPTION;
		if (strstr(options[i], "bogus")) {
			snprintf(p->log, sizeof p->log, "nvrtc: error: unrecognized option %s found\n", options[i]);
			return INVALID_OPTION;
		}
	}
	for (const char *s = p->text; (s = strstr(s, "#include <"));) {
		char name[256], path[1024];
		int found = 0;
		sscanf(s += 10, "%255[^>]", name);
		for (int i = 0; i < n; i++) {
			if (strncmp(options[i], "-I", 2)) continue;
			snprintf(path, sizeof path, "%s/%s", options[i] + 2, name);
			found |= access(path, R_OK) == 0;
		}
		for (int i = 0; i < p->numHeaders; i++)
			found |= strcmp(p->headers[i], name) == 0;
		if (found) continue;
		snprintf(p->log, sizeof p->log, "%s(1): catastrophic error: could not open source file \"%s\" (no directories in search list)\n  #include <%s>\n                      ^\n\n", p->name, name, name);
		return COMPILATION;
	}
	if (strstr(p->text, "odd"))
		snprintf(p->log, sizeof p->log, "%s(1): warning #177-D: variable \"odd\" was declared but never referenced\n  int odd;\n      ^\n\n", p->name);
	if (strstr(p->text, "wrong")) {
		at = strlen(p->log);
		snprintf(p->log + at, sizeof p->log - at, "%s(2): error: identifier \"wrong\" is undefined\n  *x = wrong;\n       ^\n\n1 error detected in the compilation of \"%s\".\n", p->name, p->name);
		return COMPILATION;
	}
	return OK;
}

int nvrtcGetProgramLogSize(program *p, size_t *n) { *n = strlen(p->log) + 1; return OK; }
int nvrtcGetProgramLog(program *p, char *log) { strcpy(log, p->log); return OK; }

int nvrtcGetLoweredName(program *p, const char *name, const char **out)
{
	if (!p->compiled) return NO_NAMES_BEFORE;
	for (int i = 0; i < p->numNames; i++)
		if (!strcmp(p->names[i], name) && strstr(p->text, "none") == 0) {
			*out = p->lowered[i];
			return OK;
		}
	return NOT_VALID;
}

int nvrtcGetCUBINSize(program *p, size_t *n) { *n = p->real && !p->lto ? 4 + strlen(p->code) : 0; return OK; }
int nvrtcGetCUBIN(program *p, char *out) { memcpy(out, "\x7f" "ELF", 4); memcpy(out + 4, p->code, strlen(p->code)); return OK; }
int nvrtcGetPTXSize(program *p, size_t *n) { *n = 1 + (p->virtual && !p->lto ? 9 + strlen(p->code) : 0); return OK; }
int nvrtcGetPTX(program *p, char *out) { if (p->virtual && !p->lto) sprintf(out, ".version\n%s", p->code); else *out = 0; return OK; }
#ifndef NO_LTO
int nvrtcGetLTOIRSize(program *p, size_t *n) { *n = p->lto ? strlen(p->code) + strlen(p->text) : 0; return OK; }
int nvrtcGetLTOIR(program *p, char *out) { memcpy(out, p->code, strlen(p->code)); memcpy(out + strlen(p->code), p->text, strlen(p->text)); return OK; }
#endif
