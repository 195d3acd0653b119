// Package mathtest checks the packages above NVIDIA's libraries, such as blas and fft. Their own
// tests run the checks on the simulated GPU, and the tests of this package on a GPU, where there is
// one. Tests of fft and random compare the GPU with the simulated one.
//
// If PUREGPU_MATH_OUT names a folder, tests also write their inputs and results there, and
// testdata/compare.py compares them with PyTorch and CuPy:
//
//	PUREGPU_MATH_OUT=$OUT go test ./internal/mathtest && python3 internal/mathtest/testdata/compare.py $OUT
//
// If PUREGPU_MATH_TIMES is set, TestTimes compares times with PyTorch, in a process of the Python
// that PUREGPU_MATH_PYTHON names (python3):
//
//	PUREGPU_MATH_TIMES=1 go test ./internal/mathtest -run TestTimes -v
package mathtest
