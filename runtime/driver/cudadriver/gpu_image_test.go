package cudadriver

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// imagesArch is the architecture of the cubins in testdata/images.
const imagesArch = "sm_90"

// TestGPUParams compares the parameters that images declare with those that the driver reports.
func TestGPUParams(t *testing.T) {
	d := openGPU(t)
	if !d.caps.KernelParams {
		t.Skip("the driver tells nothing of parameters")
	}
	images := map[string][]byte{"basic": kernels.Basic, "dense": kernels.Dense, "saxpy": kernels.Saxpy, "params.ptx": image(t, "params.ptx")}
	if d.info.Arch == imagesArch {
		for _, name := range []string{"params.cubin", "params.fatbin", "compressed.fatbin"} {
			images[name] = image(t, name)
		}
	}
	for name, code := range images {
		m, err := d.Load(code)
		ok(t, err)
		said := inspect(code)
		names := []string{"none", "small", "big"}
		if said.params != nil {
			names = names[:0]
			for kernel := range said.params {
				names = append(names, kernel)
			}
		}
		for _, kernel := range names {
			f, info, err := d.Function(m, kernel)
			ok(t, err)
			sizes, err := d.params(cuda.Function(f), untold)
			ok(t, err)
			n := said.number(kernel)
			t.Logf("%s: kernel %s has parameters of %v bytes; the image says %d", name, kernel, sizes, n)
			if len(info.Params) != len(sizes) || n != len(sizes) && name != "compressed.fatbin" {
				t.Errorf("%s: kernel %s has %d parameters; Function says %v, and the image %d", name, kernel, len(sizes), info.Params, n)
			}
		}
		ok(t, d.Unload(m))
	}
}

// TestGPUOtherArchitecture loads a cubin for sm_20, which the device is not.
func TestGPUOtherArchitecture(t *testing.T) {
	d := openGPU(t)
	code := image(t, "params.cubin")
	at := bytes.Index(code[48:52], []byte{90}) // offset of the architecture in the header
	code[48+at] = 20
	_, err := d.Load(code)
	t.Log(err)
	if !errors.Is(err, cuda.ErrorNoBinaryForGPU) || !strings.Contains(err.Error(), " for "+d.info.Arch+": it has code for sm_20: ") {
		t.Errorf("a cubin for sm_20: %v", err)
	}
}

// TestGPUUnresolved loads code that was not linked, and code that uses only functions of the
// driver.
func TestGPUUnresolved(t *testing.T) {
	d := openGPU(t)
	find := func(name, kernel string) error {
		m, err := d.Load(image(t, name))
		if err == nil {
			_, _, err = d.Function(m, kernel)
			err = errors.Join(err, d.Unload(m))
		}
		t.Logf("%s: %v", name, err)
		return err
	}
	if err := find("unresolved.ptx", "calls"); err == nil || strings.Contains(err.Error(), "mangled") {
		t.Errorf("PTX: %v", err)
	}
	if err := find("unresolved.cubin", "calls"); !errors.Is(err, cuda.ErrorInvalidImage) || !strings.Contains(err.Error(), "unresolved symbol table, other: ") {
		t.Errorf("a cubin: %v", err)
	}
	if d.info.Arch != imagesArch {
		return
	}
	if err := find("unresolved.fatbin", "calls"); err == nil || !strings.Contains(err.Error(), "unresolved symbol table, other: ") {
		t.Errorf("a fat binary: %v", err)
	}
	if err := find("resolving.cubin", "heap"); err != nil && !strings.Contains(err.Error(), "linked") {
		t.Errorf("a cubin in which nothing is missing: %v", err)
	}
	for _, kernel := range []string{"calls", "heap"} {
		ok(t, find("linked.cubin", kernel))
	}
}

// TestGPUCluster runs a kernel whose blocks form clusters of two.
func TestGPUCluster(t *testing.T) {
	d := openGPU(t)
	if !d.info.Clusters {
		t.Skip("the device has no clusters")
	}
	s := newStream(t, d)
	fn, info := load(t, d, []byte(".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry pairs() .explicitcluster .reqnctapercluster 2, 1, 1 { ret; }\n"), "pairs")
	if info.Cluster != [3]int{2, 1, 1} {
		t.Errorf("clusters of %v", info.Cluster)
	}
	launch := &driver.Launch{Function: fn, Grid: [3]uint32{4, 3, 1}, Block: [3]uint32{32, 1, 1}}
	ok(t, d.Launch(s, launch))
	finish(t, d, s)
	launch.Grid[0] = 3
	err := d.Launch(s, launch)
	t.Logf("half a cluster: %v", err)
	if err == nil || errors.Is(err, driver.ErrLost) {
		t.Errorf("half a cluster: %v", err)
	}
	if _, info := load(t, d, kernels.Saxpy, "saxpy"); info.Cluster != [3]int{} {
		t.Errorf("a kernel without has clusters of %v", info.Cluster)
	}
}

// TestGPULoadTwice loads the same code twice. Each module is separate, also after the other is
// unloaded.
func TestGPULoadTwice(t *testing.T) {
	d := openGPU(t)
	var modules [2]driver.Module
	for i := range modules {
		m, err := d.Load(image(t, "params.ptx"))
		ok(t, err)
		modules[i] = m
	}
	t.Logf("modules %#x, as libraries: %v", modules, d.hasLibraries)
	if modules[0] == modules[1] {
		t.Fatal("both are one module")
	}
	ok(t, d.Unload(modules[0]))
	_, _, err := d.Function(modules[1], "small")
	ok(t, err)
	ok(t, d.Unload(modules[1]))
}
