//go:build linux && amd64 && !nogpu && (!puregpu_static || cgo)

#include "textflag.h"

// Every thread is one of the C library's.
#define ENTER

#include "trampoline_amd64.h"
