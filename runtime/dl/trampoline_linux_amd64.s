//go:build linux && amd64 && !nogpu && (!puregpu_static || cgo)

#include "textflag.h"

// The C library knows every thread.
#define ENTER

#include "trampoline_amd64.h"
