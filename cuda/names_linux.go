package cuda

// WSL keeps the driver's library where minimal images do not look.
var (
	names = []string{"libcuda.so.1", "libcuda.so"}
	dirs  = []string{"/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/lib64/nvidia"}
)
