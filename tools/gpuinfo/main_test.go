package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/internal/version"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/runtime/dl"
)

var update = flag.Bool("update", false, "write the golden files")

// fakeLibrary is an open library without C.
type fakeLibrary struct {
	path    string
	version dl.Version
	sets    []dl.SetStatus
	missing []dl.MissingSymbol
}

func (l *fakeLibrary) Path() string                { return l.path }
func (l *fakeLibrary) Version() dl.Version         { return l.version }
func (l *fakeLibrary) Sets() []dl.SetStatus        { return l.sets }
func (l *fakeLibrary) Missing() []dl.MissingSymbol { return l.missing }
func (l *fakeLibrary) Explain() string             { return "library: fake\n" }

// machine returns the probes of the golden files' machine: a driver with three devices, an NCCL
// that is too old, no HIP, no RCCL.
func machine() []probe {
	fake := &fakeLibrary{
		path: "/usr/lib/libcuda.so.580.1", version: 12040,
		sets: []dl.SetStatus{
			{Name: "core", Since: 11020, Have: 60, Total: 60},
			{Name: "graphs", Since: 11040, Have: 7, Total: 8},
			{Name: "logs", Since: 12090, Have: 0, Total: 1},
		},
		missing: []dl.MissingSymbol{
			{Name: "cuGraphFake", Set: "graphs", Since: 12050, Why: "the driver does not know it"},
			{Name: "cuLogsFake", Set: "logs", Since: 12090, Why: "the driver does not know it"},
		},
	}
	return []probe{
		{
			name: "CUDA driver", pkg: "cuda", vendor: "NVIDIA", format: cuda.FormatVersion, absent: []error{cuda.ErrorNoDevice},
			open: func(opt dl.Options) (opened, error) {
				tell(opt, "/fake/libcuda.so", "environment variable PUREGPU_CUDA_LIBRARY", dl.ErrStub)
				tell(opt, "libcuda.so.2", "system loader", dl.ErrNotFound)
				tell(opt, "libcuda.so.1", "system loader", nil)
				return fake, nil
			},
			devices: func(_ opened, memory bool) ([]Device, error) { return cudaDevices(&fakeDriver{count: 3}, memory) },
			links:   func(_ opened, devices []Device) []Link { return cudaLinks(&fakeDriver{}, len(devices), nil) },
		},
		{
			name: "NCCL", pkg: "nccl", format: nccl.FormatVersion,
			open: func(opt dl.Options) (opened, error) {
				tell(opt, "libnccl.so.2", "system loader", nil)
				return nil, &dl.TooOldError{Package: "nccl", Name: "NCCL", Path: "/usr/lib/libnccl.so.2", Required: 2, Missing: make([]dl.MissingSymbol, 2)}
			},
		},
		absent("HIP runtime", "hip"),
		absent("RCCL", "nccl"),
	}
}

func absent(name, pkg string) probe {
	return probe{name: name, pkg: pkg, open: func(opt dl.Options) (opened, error) {
		a := dl.Attempt{Path: "libfake.so", Source: "system loader", Err: dl.ErrNotFound}
		tell(opt, a.Path, a.Source, a.Err)
		return nil, &dl.OpenError{Package: pkg, Name: name, Attempts: []dl.Attempt{a}, Hint: "install it"}
	}}
}

// tell logs a candidate in the same way as package dl.
func tell(opt dl.Options, path, source string, err error) {
	opt.Logger.Debug("open library", "path", path, "source", source, "error", err)
}

func TestGolden(t *testing.T) {
	defer func(f func() System) { readSystem = f }(readSystem)
	readSystem = func() System {
		return System{Name: "Fake Linux 1", Kernel: "6.1.0", Container: "Docker", NVIDIA: "550.54.15", User: "user 1000, group 1000, groups [1000 44]",
			Nodes: []string{"/dev/nvidiactl: Dcrw-rw-rw-, user 0, group 0, opens", "/dev/nvidia-uvm: is not there"}, Variables: []string{"CUDA_VISIBLE_DEVICES=0"}}
	}
	for _, test := range []struct{ file, flag string }{{"report.json", "-json"}, {"report.txt", "-memory"}, {"explain.txt", "-explain"}} {
		t.Run(test.file, func(t *testing.T) {
			var args []string
			if test.flag != "" {
				args = []string{test.flag}
			}
			var stdout, stderr bytes.Buffer
			if code := run(args, &stdout, &stderr, machine()); code != 1 {
				t.Errorf("exit status %d, want 1 for an NCCL that is too old", code)
			}
			if stderr.Len() > 0 {
				t.Errorf("wrote %q", &stderr)
			}
			got := anyBuild(stdout.String())
			file := filepath.Join("testdata", test.file)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s\nIf the change is meant, run go test with -update; schema grows when a field of the JSON changes or goes.", got, want)
			}
		})
	}
}

// anyBuild removes the parts of a report that differ between builds.
func anyBuild(report string) string {
	report = strings.Replace(report, version.Read().String(), "puregpu *", 1)
	report = strings.Replace(report, calls(false), calls(true), 1)
	report = regexp.MustCompile(`"(revision|revisionTime|modified)": .*\n\s*`).ReplaceAllString(report, "")
	report = regexp.MustCompile(`"program": \{\n\s*"version": ".*"`).ReplaceAllStringFunc(report, func(s string) string {
		return s[:strings.LastIndex(s, `: "`)] + `: "*"`
	})
	for _, s := range []string{runtime.Version(), runtime.GOOS, runtime.GOARCH} {
		report = strings.Replace(report, `": "`+s+`"`, `": "*"`, 1)
	}
	return strings.Replace(report, `"fastCalls": false`, `"fastCalls": true`, 1)
}

// TestManyMissingSets: of an old release, the output has the number of missing sets alone.
func TestManyMissingSets(t *testing.T) {
	for n, want := range map[int]string{8: "sets missing (8): set0 (1), set1 (1)", 9: "sets missing (9): -explain lists them\n"} {
		lib := &Library{Name: "x"}
		for i := range n {
			lib.Sets = append(lib.Sets, Set{Name: fmt.Sprint("set", i), Since: "1", Status: "missing"})
		}
		var out strings.Builder
		if lib.print(&out); !strings.Contains(out.String(), want) {
			t.Errorf("%d missing sets: %s, want %q", n, &out, want)
		}
	}
}

func TestVersion(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run([]string{"-version"}, &stdout, &stderr, nil)
	if want := "gpuinfo: " + version.Read().String() + "\n"; code != 0 || stdout.String() != want || stderr.Len() > 0 {
		t.Errorf("exit status %d, printed %q and %q, want %q", code, &stdout, &stderr, want)
	}
}

// TestJSON checks that Report describes every field of the JSON.
func TestJSON(t *testing.T) {
	var stdout bytes.Buffer
	run([]string{"-json", "-explain"}, &stdout, io.Discard, machine())
	d := json.NewDecoder(&stdout)
	d.DisallowUnknownFields()
	var r Report
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if r.Schema != schema || len(r.Libraries) != 4 || len(r.Devices) != 3 || len(r.Links) != 6 || r.Libraries[0].Explain != "library: fake\n" {
		t.Errorf("read back %+v", r)
	}
}

// TestNothingInstalled checks the output if no library is found.
func TestNothingInstalled(t *testing.T) {
	for _, pkg := range []string{"CUDA", "NCCL", "NVML", "NVRTC", "NVJITLINK", "CUPTI", "CUSOLVER", "CUSPARSE", "CUBLASLT", "CUBLAS", "CUDNN", "CURAND", "CUFFT", "CUFILE", "HIP", "HIPRTC", "HIPBLAS", "HIPFFT", "HIPRAND", "RCCL"} {
		t.Setenv("PUREGPU_"+pkg+"_LIBRARY", filepath.Join(t.TempDir(), "absent.so"))
	}
	for _, args := range [][]string{nil, {"-explain"}, {"-json"}} {
		var stdout, stderr bytes.Buffer
		if code := run(args, &stdout, &stderr, probes); code != 0 || stderr.Len() > 0 {
			t.Errorf("%q: exit status %d, %q", args, code, &stderr)
		}
		got := stdout.String()
		switch {
		case args != nil && args[0] == "-json":
			var r Report
			if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			if len(r.Libraries) != len(probes) || r.Devices == nil {
				t.Errorf("-json: %s", got)
			}
			for _, lib := range r.Libraries {
				if lib.Found || lib.Error == "" {
					t.Errorf("%s: found %v, error %q", lib.Name, lib.Found, lib.Error)
				}
			}
		case args == nil:
			lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
			if len(lines) != len(probes) {
				t.Fatalf("want a line for each library, got\n%s", got)
			}
			for i, p := range probes {
				if !strings.HasPrefix(lines[i], "No "+p.name+": ") {
					t.Errorf("got %q", lines[i])
				}
			}
			if !supported(t) {
				return
			}
			if want := "absent.so (environment variable PUREGPU_CUDA_LIBRARY): no such file. Install NVIDIA's driver"; !strings.Contains(lines[0], want) {
				t.Errorf("got %q, want %q in it", lines[0], want)
			}
		}
	}
}

// supported reports whether this build can load libraries at all.
func supported(t *testing.T) bool {
	_, err := cuda.Open(cuda.Options{Path: filepath.Join(t.TempDir(), "absent.so")})
	return !errors.Is(err, dl.ErrUnsupported)
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]int{"-h": 0, "-nonsense": 2, "argument": 2} {
		var stdout bytes.Buffer
		if code := run([]string{args}, &stdout, io.Discard, nil); code != want || stdout.Len() > 0 {
			t.Errorf("%s: exit status %d, want %d; %q", args, code, want, &stdout)
		}
	}
}

// TestNotReady checks a library without devices of its own. If the library does not start, that is
// an error, unless the machine has no device.
func TestNotReady(t *testing.T) {
	defer func(f func() System) { readSystem = f }(readSystem)
	readSystem = func() System { return System{} }
	const file = "/usr/lib/libnvidia-ml.so.1"
	for _, test := range []struct {
		err    error
		status int
		says   bool
	}{
		{fmt.Errorf("nvmlInit: %w", nvml.ErrorLibRmVersionMismatch), 1, true},
		{fmt.Errorf("%w (nvmlInit: %w)", dl.ErrNoDevice, nvml.ErrorDriverNotLoaded), 0, false},
	} {
		p := []probe{{name: "NVML", pkg: "nvml", format: nvml.FormatVersion, open: func(opt dl.Options) (opened, error) {
			opt.Logger.Debug("open library", "path", "libnvidia-ml.so.1", "source", "system loader", "file", file, "error", test.err)
			return &fakeLibrary{path: file}, nil
		}}}
		for flag, want := range map[string]string{
			"-memory":  "NVML is there and does not work: " + test.err.Error(),
			"-explain": "What to do 1: NVML: " + test.err.Error(),
			"-json":    `"error": "` + test.err.Error(),
		} {
			var stdout bytes.Buffer
			status := run([]string{flag}, &stdout, io.Discard, p)
			if status != test.status || strings.Contains(strings.Join(strings.Fields(stdout.String()), " "), want) != test.says {
				t.Errorf("%s, %v: status %d, want %d and %q: %v, got\n%s", flag, test.err, status, test.status, want, test.says, &stdout)
			}
		}
	}
}
