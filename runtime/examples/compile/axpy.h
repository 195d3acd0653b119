template <typename T> __device__ inline T axpy(T a, T x, T y) { return a * x + y; }
