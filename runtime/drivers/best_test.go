package drivers_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
)

// A log collects the text that Best logs.
type log struct {
	bytes.Buffer
	level slog.Level
}

// option makes Best log to l, without times.
func (l *log) option() drivers.Option {
	return drivers.WithLogger(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{
		Level: l.level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})))
}

// take returns the text so far and clears it.
func (l *log) take() string {
	defer l.Reset()
	return l.String()
}

// nothing makes a test find no GPU driver, because the environment names libraries that do not
// exist. It returns an option for two simulated devices.
func nothing(t *testing.T) drivers.Option {
	t.Setenv("PUREGPU_DRIVER", "")
	t.Setenv("PUREGPU_CUDA_LIBRARY", t.TempDir()+"/libcuda.so.1")
	t.Setenv("PUREGPU_HIP_LIBRARY", t.TempDir()+"/libamdhip64.so.6")
	return drivers.WithSim(simdriver.Config{Devices: 2})
}

// absent reports whether err says that a library does not exist, or that this build cannot load
// libraries.
func absent(err error) bool {
	return errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported)
}

// TestBestSimulates checks that Best, when it takes the simulated GPU, logs a warning in one line
// and the details at level debug.
func TestBestSimulates(t *testing.T) {
	opt := nothing(t)
	var l log
	d, err := drivers.Best(opt, l.option(), nil)
	if err != nil {
		t.Fatal(err)
	}
	infos, err := d.Devices()
	if d.Name() != "sim" || len(infos) != 2 || err != nil {
		t.Errorf("driver %s has %d devices, %v; want sim, 2", d.Name(), len(infos), err)
	}
	got := l.take()
	if n := strings.Count(got, "\n"); n != 1 || !strings.HasPrefix(got, `level=WARN msg="puregpu: no GPU can be used, simulating one" cuda="`) {
		t.Errorf("logged %d lines:\n%s", n, got)
	}
	l.level = slog.LevelDebug
	if _, err = drivers.Best(opt, l.option()); err != nil {
		t.Fatal(err)
	}
	if got := l.take(); !strings.HasPrefix(got, `level=DEBUG msg="puregpu: a driver cannot be used" driver=cuda error="cuda: `) {
		t.Errorf("at level debug it logs\n%s", got)
	}
	d, err = drivers.Best(opt, drivers.WithoutSim(), l.option())
	if d != nil || !errors.Is(err, drivers.ErrNoGPU) || !absent(err) {
		t.Fatalf("without the simulated GPU: %v, %v", d, err)
	}
	if first, rest, _ := strings.Cut(err.Error(), "\n"); first != "drivers: no GPU can be used" || !strings.HasPrefix(rest, "cuda: ") {
		t.Errorf("error:\n%v", err)
	}
	if got := l.take(); strings.Contains(got, "WARN") {
		t.Errorf("it warns about the driver that it returns:\n%s", got)
	}
}

// TestBestLogsToDefault checks that Best logs to slog's default without a logger.
func TestBestLogsToDefault(t *testing.T) {
	opt := nothing(t)
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	var out bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	for _, l := range [][]drivers.Option{{opt}, {opt, drivers.WithLogger(nil)}} {
		out.Reset()
		if d, err := drivers.Best(l...); err != nil || d.Name() != "sim" || !strings.Contains(out.String(), "level=WARN") {
			t.Errorf("%v, %v, logged %q", d, err, &out)
		}
	}
}

// TestBestObeysEnvironment checks that Best opens only the driver that PUREGPU_DRIVER names. If
// Best cannot open this driver, the error must say why.
func TestBestObeysEnvironment(t *testing.T) {
	opt := nothing(t)
	l := log{level: slog.LevelDebug}
	for name, wrong := range map[string]func(error) bool{
		"sim":   nil,
		"cuda":  absent,
		"hip":   absent,
		"CUDA":  func(err error) bool { return errors.Is(err, drivers.ErrUnknown) },
		"cuda ": func(err error) bool { return errors.Is(err, drivers.ErrUnknown) },
	} {
		t.Setenv("PUREGPU_DRIVER", name)
		d, err := drivers.Best(opt, l.option())
		if wrong == nil {
			if err != nil || d.Name() != name {
				t.Errorf("%s: %v, %v", name, d, err)
			}
		} else if d != nil || err == nil || !wrong(err) || errors.Is(err, drivers.ErrNoGPU) ||
			!strings.HasPrefix(err.Error(), `drivers: the environment variable PUREGPU_DRIVER is "`+name+`": `) {
			t.Errorf("%s: %v, %v", name, d, err)
		}
		if got := l.take(); got != "" {
			t.Errorf("%s: logged\n%s", name, got)
		}
		if d, err := drivers.Open(drivers.Sim); err != nil || d.Name() != "sim" {
			t.Errorf("%s: PUREGPU_DRIVER affects Open: %v", name, err)
		}
	}
	t.Setenv("PUREGPU_DRIVER", "nonsense")
	if _, err := drivers.Best(); err == nil || !strings.Contains(err.Error(), "unknown driver; use cuda, hip or sim") {
		t.Errorf("an unknown name: %v", err)
	}
	t.Setenv("PUREGPU_DRIVER", "sim")
	if d, err := drivers.Best(opt, drivers.WithoutSim()); d != nil || !errors.Is(err, drivers.ErrNoGPU) || !strings.Contains(err.Error(), `PUREGPU_DRIVER is "sim"`) {
		t.Errorf("the simulated GPU, which the program does not want: %v, %v", d, err)
	}
}

// TestBestHere checks that Best opens a driver with a device on this machine. If that driver is not
// the simulated GPU, Best must open it with WithoutSim too.
func TestBestHere(t *testing.T) {
	t.Setenv("PUREGPU_DRIVER", "")
	d, err := drivers.Best(drivers.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil {
		t.Fatal(err)
	}
	if i, err := drivers.Find(d, "0"); i != 0 || err != nil {
		t.Errorf("the best driver, %s: found device %d, %v; want 0", d.Name(), i, err)
	}
	gpu, err := drivers.Best(drivers.WithoutSim())
	switch {
	case d.Name() == drivers.Sim:
		if gpu != nil || !errors.Is(err, drivers.ErrNoGPU) {
			t.Errorf("without the simulated GPU: %v, %v", gpu, err)
		}
		t.Log(err)
	case err != nil || gpu.Name() != d.Name():
		t.Errorf("the best driver is %s, and without the simulated GPU %v, %v", d.Name(), gpu, err)
	}
}

// TestBestOptions checks that options reach the drivers.
func TestBestOptions(t *testing.T) {
	nothing(t)
	dir := t.TempDir()
	_, err := drivers.Best(drivers.WithoutSim(), drivers.WithCUDA(cuda.Options{Path: dir + "/mycuda.so"}), drivers.WithHIP(hip.Options{Path: dir + "/myhip.so"}))
	if errors.Is(err, dl.ErrUnsupported) {
		t.Skip(err)
	}
	want := "drivers: no GPU can be used\n" +
		"cuda: CUDA driver not found: " + dir + "/mycuda.so (Options.Path): no such file; install NVIDIA's driver, release 460 (CUDA 11.2) or newer, or correct Options.Path\n" +
		"hip: HIP runtime not found: " + dir + "/myhip.so (Options.Path): no such file; install ROCm's HIP runtime, 5.2 or newer (package hip-runtime-amd, on Debian libamdhip64), or correct Options.Path"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
