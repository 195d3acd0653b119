// Package mathtest has checks of the packages blas, dnn, solver and sparse. The tests of those
// packages run the checks on the simulated GPU, and the tests of this package run them on a GPU.
// The tests of packages fft and random that are in this package compare a GPU with the simulated
// one.
//
// If PUREGPU_MATH_OUT names a folder, some tests also write their inputs and results there, and
// testdata/compare.py compares them with PyTorch and CuPy:
//
//	PUREGPU_MATH_OUT=$OUT go test ./internal/mathtest && python3 internal/mathtest/testdata/compare.py $OUT
//
// If PUREGPU_MATH_TIMES is set, TestTimes compares times with PyTorch, in a process of the Python
// that PUREGPU_MATH_PYTHON names, or of python3:
//
//	PUREGPU_MATH_TIMES=1 go test ./internal/mathtest -run TestTimes -v
package mathtest
