// What tells the release of a library, for fakes that otherwise only export names.
//
//	CUDA, NCCL          the number that the library tells
//	MAJOR, MINOR        the two numbers that NVRTC and nvJitLink tell
//
// NVML and the libraries of HIP tell nothing: the name of their file does.
#if defined(CUDA)
int cuDriverGetVersion(int *version)
{
	*version = CUDA;
	return 0;
}
#elif defined(NCCL)
int ncclGetVersion(int *version)
{
	*version = NCCL;
	return 0;
}
#elif defined(MAJOR)
int nvrtcVersion(int *major, int *minor)
{
	*major = MAJOR;
	*minor = MINOR;
	return 0;
}
int nvJitLinkVersion(unsigned *major, unsigned *minor)
{
	*major = MAJOR;
	*minor = MINOR;
	return 0;
}
#else
int nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
	return 1;
}
int hipRuntimeGetVersion(int *version)
{
	return 100;
}
#endif
