package testlib

import (
	"fmt"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/symbols"
)

// NVML describes the NVML of testdata/fakes/nvml.c, of 13.0.
func NVML(t testing.TB, defines ...string) Fake {
	t.Helper()
	tab, err := symbols.Load("nvml")
	if err != nil {
		t.Fatal(err)
	}
	f := Fake{File: "libnvidia-ml.so.1", Source: "nvml.c", Defines: defines}
	for _, fn := range tab.Funcs {
		if v := fn.Since; v.Major < 13 || v.Major == 13 && v.Minor == 0 {
			f.Symbols = append(f.Symbols, fn.Symbol)
		}
	}
	return f
}

// NCCL describes the NCCL of testdata/fakes/comms.c in a release, by its version code: 22803 for 2.28.3. With rccl it goes by
// the name of AMD's library.
func NCCL(t testing.TB, release int, rccl bool) Fake {
	t.Helper()
	tab, err := symbols.Load("nccl")
	if err != nil {
		t.Fatal(err)
	}
	f := Fake{File: "libnccl.so.2", Source: "comms.c", Defines: []string{fmt.Sprint("VERSION=", release)}}
	if rccl {
		f.File = "librccl.so.1"
	}
	for _, fn := range tab.Funcs {
		v := fn.Since
		code := 10000*v.Major + 100*v.Minor + v.Patch
		if v.Minor < 9 { // up to 2.8 a digit less
			code = 1000*v.Major + 100*v.Minor + v.Patch
		}
		if code <= release && !strings.HasPrefix(tab.Sets[fn.Set].Name, "rccl") {
			f.Symbols = append(f.Symbols, fn.Symbol)
		}
	}
	return f
}
