// Package mathtest checks the packages above NVIDIA's libraries, such as blas and fft. Their own
// tests run the checks on the simulated GPU, and the tests of this package on a GPU, where there is
// one.
package mathtest
