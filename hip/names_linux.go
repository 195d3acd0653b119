package hip

var (
	names = []string{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}
	dirs  = []string{"$ROCM_PATH/lib", "/opt/rocm/lib", "/opt/rocm-*/lib"}
)
