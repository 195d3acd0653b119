package solver

import (
	"math"
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

// These functions are the stand-ins for functions of cuSOLVER. They compute in float64.

// readRows returns rows of a matrix as float64.
func readRows[T Element](mem standin.Memory, p driver.Ptr, rows, cols, stride int32, size uint64) ([][]float64, error) {
	all := make([][]float64, rows)
	for i := range all {
		row, err := standin.Read[T](mem, p+driver.Ptr(uint64(i)*uint64(stride)*size), int(cols))
		if err != nil {
			return nil, err
		}
		all[i] = make([]float64, cols)
		for j, x := range row {
			all[i][j] = float64(x)
		}
	}
	return all, nil
}

// writeRow writes the first end elements of a row.
func writeRow[T Element](mem standin.Memory, p driver.Ptr, row []float64, end int) error {
	to, err := standin.Write[T](mem, p, end)
	for j := range to {
		to[j] = T(row[j])
	}
	return err
}

// writeInfo writes the outcome of an operation to p.
func writeInfo(mem standin.Memory, p driver.Ptr, info int) error {
	to, err := standin.Write[int32](mem, p, 1)
	if err == nil {
		to[0] = int32(info)
	}
	return err
}

// row returns the address of a row.
func (m shape) row(p driver.Ptr, i int) driver.Ptr {
	return p + driver.Ptr(uint64(i)*uint64(m.stride)*m.size)
}

// sideRow returns the address of a right-hand side.
func (m shape) sideRow(p driver.Ptr, i int) driver.Ptr {
	return p + driver.Ptr(uint64(i)*uint64(m.sideStride)*m.size)
}

// cholesky factorizes the matrix at p[0] and writes the outcome to p[1].
func cholesky[T Element](mem standin.Memory, m shape, p []driver.Ptr) error {
	a, err := readRows[T](mem, p[0], m.n, m.n, m.stride, m.size)
	if err != nil {
		return err
	}
	info := 0
	for j := 0; j < int(m.n) && info == 0; j++ {
		d := a[j][j]
		for k := range j {
			d -= a[j][k] * a[j][k]
		}
		if !(d > 0) {
			info = j + 1
			break
		}
		a[j][j] = math.Sqrt(d)
		for i := j + 1; i < int(m.n); i++ {
			x := a[i][j]
			for k := range j {
				x -= a[i][k] * a[j][k]
			}
			a[i][j] = x / a[j][j]
		}
	}
	for i := range a {
		if err := writeRow[T](mem, m.row(p[0], i), a[i], i+1); err != nil {
			return err
		}
	}
	return writeInfo(mem, p[1], info)
}

// choleskySolve solves with the factor at p[0] for each row of the right-hand sides at p[1].
func choleskySolve[T Element](mem standin.Memory, m shape, p []driver.Ptr) error {
	a, err := readRows[T](mem, p[0], m.n, m.n, m.stride, m.size)
	if err != nil {
		return err
	}
	b, err := readRows[T](mem, p[1], m.sides, m.n, m.sideStride, m.size)
	if err != nil {
		return err
	}
	n := int(m.n)
	for s, x := range b {
		for i := range n {
			for k := range i {
				x[i] -= a[i][k] * x[k]
			}
			x[i] /= a[i][i]
		}
		for i := n - 1; i >= 0; i-- {
			for k := i + 1; k < n; k++ {
				x[i] -= a[k][i] * x[k]
			}
			x[i] /= a[i][i]
		}
		if err := writeRow[T](mem, m.sideRow(p[1], s), x, n); err != nil {
			return err
		}
	}
	return writeInfo(mem, p[2], 0)
}

// lu factorizes the matrix at p[0], writes the pivots to p[1] and the outcome to p[2]. Row i of a
// is column i of the matrix that cuSOLVER factorizes.
func lu[T Element](mem standin.Memory, m shape, p []driver.Ptr) error {
	a, err := readRows[T](mem, p[0], m.n, m.n, m.stride, m.size)
	if err != nil {
		return err
	}
	pivots, err := standin.Write[int32](mem, p[1], int(m.n))
	if err != nil {
		return err
	}
	n, info := int(m.n), 0
	for j := range n {
		best := j
		for i := j + 1; i < n; i++ {
			if math.Abs(a[j][i]) > math.Abs(a[j][best]) {
				best = i
			}
		}
		pivots[j] = int32(best) + 1
		if a[j][best] == 0 {
			if info == 0 {
				info = j + 1
			}
			continue
		}
		for c := range n {
			a[c][j], a[c][best] = a[c][best], a[c][j]
		}
		for i := j + 1; i < n; i++ {
			a[j][i] /= a[j][j]
			for c := j + 1; c < n; c++ {
				a[c][i] -= a[j][i] * a[c][j]
			}
		}
	}
	for i := range a {
		if err := writeRow[T](mem, m.row(p[0], i), a[i], n); err != nil {
			return err
		}
	}
	return writeInfo(mem, p[2], info)
}

// luSolve solves with the factors at p[0] and the pivots at p[1] for each row of the right-hand
// sides at p[2].
func luSolve[T Element](mem standin.Memory, m shape, p []driver.Ptr) error {
	f, err := readRows[T](mem, p[0], m.n, m.n, m.stride, m.size)
	if err != nil {
		return err
	}
	pivots, err := standin.Read[int32](mem, p[1], int(m.n))
	if err != nil {
		return err
	}
	b, err := readRows[T](mem, p[2], m.sides, m.n, m.sideStride, m.size)
	if err != nil {
		return err
	}
	n := int(m.n)
	for s, x := range b { // aᵀ = Pᵀ·L·U, so a = Uᵀ·Lᵀ·P
		for i := range n {
			for k := range i {
				x[i] -= f[i][k] * x[k] // column i of U is in row i of f
			}
			x[i] /= f[i][i]
		}
		for i := n - 1; i >= 0; i-- {
			for k := i + 1; k < n; k++ {
				x[i] -= f[i][k] * x[k] // column i of L is in row i of f
			}
		}
		for i := n - 1; i >= 0; i-- {
			if to := int(pivots[i]) - 1; to >= 0 && to < n {
				x[i], x[to] = x[to], x[i]
			}
		}
		if err := writeRow[T](mem, m.sideRow(p[2], s), x, n); err != nil {
			return err
		}
	}
	return writeInfo(mem, p[3], 0)
}

// eigen computes the eigenvalues of the matrix at p[0] by Jacobi rotations. It writes the
// eigenvalues to p[1] and the outcome to p[2]. If vectors is true, eigen replaces the matrix by the
// eigenvectors. Otherwise eigen replaces it by NaN.
func eigen[T Element](mem standin.Memory, m shape, vectors bool, p []driver.Ptr) error {
	a, err := readRows[T](mem, p[0], m.n, m.n, m.stride, m.size)
	if err != nil {
		return err
	}
	n := int(m.n)
	v := make([][]float64, n) // row i is the eigenvector for a[i][i]
	for i := range v {
		v[i] = make([]float64, n)
		v[i][i] = 1
		for j := i + 1; j < n; j++ {
			a[i][j] = a[j][i]
		}
	}
	info := 1
	for range 60 {
		if rotateAll(a, v) {
			info = 0
			break
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		switch {
		case a[i][i] < a[j][j]:
			return -1
		case a[i][i] > a[j][j]:
			return 1
		}
		return 0
	})
	values := make([]float64, n)
	for i, k := range order {
		values[i] = a[k][k]
		if math.IsNaN(values[i]) || math.IsInf(values[i], 0) {
			info = 1
		}
		row := v[k]
		if !vectors {
			row = slices.Repeat([]float64{math.NaN()}, n)
		}
		if err := writeRow[T](mem, m.row(p[0], i), row, n); err != nil {
			return err
		}
	}
	if err := writeRow[T](mem, p[1], values, n); err != nil {
		return err
	}
	return writeInfo(mem, p[2], info)
}

// rotateAll visits each element above the diagonal of the symmetric matrix a once, and makes the
// element zero by a rotation of two rows and columns, unless the element is negligible. rotateAll
// applies the rotations to v too, and reports whether all these elements were negligible.
func rotateAll(a, v [][]float64) (done bool) {
	n, done := len(a), true
	for i := range n {
		for j := i + 1; j < n; j++ {
			if math.Abs(a[i][j]) <= 1e-17*math.Sqrt(math.Abs(a[i][i]*a[j][j])) || a[i][j] == 0 {
				continue
			}
			done = false
			theta := (a[j][j] - a[i][i]) / (2 * a[i][j])
			t := 1 / (math.Abs(theta) + math.Sqrt(theta*theta+1))
			if theta < 0 {
				t = -t
			}
			c := 1 / math.Sqrt(t*t+1)
			s := t * c
			for k := range n {
				x, y := c*a[i][k]-s*a[j][k], s*a[i][k]+c*a[j][k]
				if k != i && k != j {
					a[i][k], a[k][i], a[j][k], a[k][j] = x, x, y, y
				}
				v[i][k], v[j][k] = c*v[i][k]-s*v[j][k], s*v[i][k]+c*v[j][k]
			}
			a[i][i] -= t * a[i][j]
			a[j][j] += t * a[i][j]
			a[i][j], a[j][i] = 0, 0
		}
	}
	return done
}
