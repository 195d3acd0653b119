//go:build !linux

package nccl

// NCCL and RCCL exist for Linux only; a name is still needed for the error that says so.
var (
	ncclNames = []string{"nccl.dll"}
	ncclDirs  []string
	rcclNames = []string{"rccl.dll"}
	rcclDirs  []string
)
