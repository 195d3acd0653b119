//go:build linux && amd64 && puregpu_static && !nogpu && !cgo

package hostlibc

import "testing"

func TestStart(t *testing.T) {
	l, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v tls %d", l, int(table[len(functions)]))
}
