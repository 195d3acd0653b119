package nccl

// The versioned name comes first: the plain one belongs to development packages.
var (
	ncclNames = []string{"libnccl.so.2", "libnccl.so"}
	ncclDirs  = []string{"$NCCL_HOME/lib", "$CUDA_HOME/lib64", "/usr/local/cuda/lib64"}
	rcclNames = []string{"librccl.so.1", "librccl.so"}
	rcclDirs  = []string{"$ROCM_PATH/lib", "/opt/rocm/lib", "/opt/rocm-*/lib"}
)
