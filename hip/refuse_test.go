//go:build linux && (amd64 || arm64) && !nogpu

package hip

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// refused returns the functions of a release that must not be called, sorted. The list was made by
// hand from the headers of all releases from 5.2 to 7.2. The generated tables must agree with it.
func refused(release dl.Version) (names []string) {
	if release < 5_03_00000 {
		names = append(names, "hipMemCreate", "hipMemGetAllocationGranularity", "hipMemGetAllocationPropertiesFromHandle")
	}
	if release < 5_05_00000 {
		names = append(names, "hipGraphNodeGetType")
	}
	if release < 6_00_00000 {
		names = append(names, "hipDrvMemcpy3D", "hipDrvMemcpy3DAsync", "hipSignalExternalSemaphoresAsync", "hipWaitExternalSemaphoresAsync",
			"hipDrvMemcpy2DUnaligned", "hipMemcpyParam2D", "hipMemcpyParam2DAsync", "hipPointerGetAttributes")
	}
	if release >= 7_00_00000 {
		names = append(names, "hipDrvGraphAddMemsetNode", "hipDrvGraphExecMemsetNodeSetParams")
	}
	slices.Sort(names)
	return names
}

// TestRefused checks that the binding refuses, with each release, exactly the functions in refused.
func TestRefused(t *testing.T) {
	for _, release := range []dl.Version{5_02_21153, 5_02_99999, 5_03_00000, 5_04_99999, 5_05_00000, 5_99_99999, 6_00_00000, 6_04_43484, 6_99_99999,
		7_00_00000, 7_02_53211} {
		l := openFake(t, release)
		var got []string
		for _, m := range l.Missing() {
			if m.Since <= release {
				got = append(got, m.Name)
			}
		}
		if slices.Sort(got); !slices.Equal(got, refused(release)) {
			t.Errorf("HIP %s refuses %q\nwant %q", FormatVersion(release), got, refused(release))
		}
	}
}

// TestRefusedCalls checks the errors of calls of refused functions.
func TestRefusedCalls(t *testing.T) {
	const is = "; found HIP runtime %s): "
	calls := map[dl.Version]map[string]func(l *Library) error{
		5_02_21153: {
			"hip: hipMemCreate cannot be called (set virtual-memory, since 5.1" + is + "hipMemAllocationProp has its fields in another order before 5.3": func(l *Library) error {
				_, err := l.MemCreate(1<<21, &MemAllocationProp{Location: MemLocation{Id: 3}}, 0)
				return err
			},
			"hip: hipGraphNodeGetType cannot be called (set graphs, since 4.5" + is + "hipGraphNodeType has other numbers before 5.5": func(l *Library) error {
				_, err := l.GraphNodeGetType(1)
				return err
			},
		},
		5_07_31921: {
			"hip: hipDrvMemcpy3D cannot be called (set memory, since 4.2" + is + "HIP_MEMCPY3D is of 128 bytes before 6.0, and of 184 since; use Memcpy3D or Memcpy3DAsync": func(l *Library) error {
				return l.DrvMemcpy3D(new(Memcpy3D))
			},
			"hip: hipMemcpyParam2D cannot be called (set memory, since 4.2" + is + "hipMemoryType has other numbers before 6.0; use Memcpy2D or Memcpy2DAsync": func(l *Library) error {
				return l.MemcpyParam2D(new(Memcpy2D))
			},
			"hip: hipPointerGetAttributes cannot be called (set memory, since 4.2" + is + "hipMemoryType has other numbers before 6.0; use PointerGetAttribute, which tells all but that": func(l *Library) error {
				_, err := l.PointerGetAttributes(nil)
				return err
			},
			"hip: hipWaitExternalSemaphoresAsync cannot be called (set external-interop, since 4.3" + is + "hipExternalSemaphoreWaitParams is of 136 bytes before 6.0, and of 144 since": func(l *Library) error {
				return l.WaitExternalSemaphoresAsync(make([]ExternalSemaphore, 1), make([]ExternalSemaphoreWaitParams, 1), 0)
			},
		},
		7_01_52801: {
			"hip: hipDrvGraphAddMemsetNode cannot be called (set graphs-6.1, since 6.1" + is + "it takes const hipMemsetParams * from 7.0 on; use GraphAddMemsetNode": func(l *Library) error {
				_, err := l.DrvGraphAddMemsetNode(1, nil, new(DrvMemsetNodeParams), 0)
				return err
			},
			"hip: hipDrvGraphExecMemsetNodeSetParams cannot be called (set graphs-6.2, since 6.2" + is + "it takes const hipMemsetParams * from 7.0 on; use GraphExecMemsetNodeSetParams": func(l *Library) error {
				return l.DrvGraphExecMemsetNodeSetParams(1, 1, new(DrvMemsetNodeParams), 0)
			},
		},
	}
	for release, calls := range calls {
		l := openFake(t, release)
		for want, call := range calls {
			want = fmt.Sprintf(want, FormatVersion(release))
			if err := call(l); !errors.Is(err, dl.ErrSymbol) || err.Error() != want {
				t.Errorf("%v\nwant %s", err, want)
			}
		}
	}
}

// TestMemsetNodes checks that the functions for fill nodes receive the arguments of the call, in
// each release in which the bindings call them.
func TestMemsetNodes(t *testing.T) {
	dst := new([1536]byte)
	for _, release := range []dl.Version{5_02_00000, 5_07_31921, 6_04_43484, 7_00_51831, 7_01_52801} {
		l := openFake(t, release)
		p := MemsetParams{Dst: unsafe.Pointer(dst), Pitch: 512, Value: 7, ElementSize: 4, Width: 64, Height: 3}
		drv := DrvMemsetNodeParams{Dst: DevicePtr(uintptr(unsafe.Pointer(dst))), Pitch: 512, Value: 7, ElementSize: 4, Width: 64, Height: 3}
		for name, call := range map[string]func() error{
			"hipGraphAddMemsetNode":              func() error { _, err := l.GraphAddMemsetNode(1, nil, &p); return err },
			"hipGraphMemsetNodeSetParams":        func() error { return l.GraphMemsetNodeSetParams(1, &p) },
			"hipGraphExecMemsetNodeSetParams":    func() error { return l.GraphExecMemsetNodeSetParams(1, 1, &p) },
			"hipDrvGraphAddMemsetNode":           func() error { _, err := l.DrvGraphAddMemsetNode(1, nil, &drv, 0); return err },
			"hipDrvGraphExecMemsetNodeSetParams": func() error { return l.DrvGraphExecMemsetNodeSetParams(1, 1, &drv, 0) },
		} {
			if err := l.GraphMemsetNodeSetParams(1, new(MemsetParams)); err != nil {
				t.Errorf("HIP %s: %v", FormatVersion(release), err)
			}
			want, has := p, !strings.HasPrefix(name, "hipDrv") || release/1_00_00000 == 6
			if !has {
				want = MemsetParams{}
			}
			if err := call(); has && err != nil || !has && !errors.Is(err, dl.ErrSymbol) {
				t.Errorf("HIP %s: %s: %v", FormatVersion(release), name, err)
			}
			if got, err := l.GraphMemsetNodeGetParams(1); got != want || err != nil {
				t.Errorf("HIP %s: %s has arrived as %+v, %v; want %+v", FormatVersion(release), name, got, err, want)
			}
		}
	}
}
