//go:build !linux

package hip

var (
	names = []string{"amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"}
	dirs  = []string{"$HIP_PATH/bin"}
)
