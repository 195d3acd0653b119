package metrics_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/health"
	"github.com/puregpu/puregpu/runtime/metrics"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, devices int) []*gpu.Device {
	t.Helper()
	d := simdriver.New(simdriver.Config{Devices: devices})
	var all []*gpu.Device
	for i := range devices {
		dev, err := gpu.Open(d, i, gpu.Options{})
		must(t, err)
		t.Cleanup(func() { dev.Close() })
		all = append(all, dev)
	}
	return all
}

var sampleLine = regexp.MustCompile(`^([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? ([0-9]+)$`)

// scrape gets the metrics from a handler, checks the text against the rules of OpenMetrics, and
// returns the samples.
func scrape(t *testing.T, h http.Handler) map[string]uint64 {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || got != "application/openmetrics-text; version=1.0.0; charset=utf-8" {
		t.Fatalf("status %d, type %q", w.Code, got)
	}
	text := w.Body.String()
	if !utf8.ValidString(text) {
		t.Errorf("the answer is not UTF-8: %q", text)
	}
	if !strings.HasSuffix(text, "\n# EOF\n") || strings.Count(text, "# EOF") != 1 {
		t.Fatalf("the answer has no end, or several: %q", text)
	}
	samples, families, series := map[string]uint64{}, map[string]string{}, map[string]bool{}
	family, unit, helped := "", "", false
	for lines := bufio.NewScanner(strings.NewReader(strings.TrimSuffix(text, "# EOF\n"))); lines.Scan(); {
		line := lines.Text()
		if meta, ok := strings.CutPrefix(line, "# "); ok {
			f := strings.SplitN(meta, " ", 3)
			switch {
			case f[0] == "TYPE" && len(f) == 3 && (f[2] == "gauge" || f[2] == "counter"):
				if families[f[1]] != "" {
					t.Errorf("family %s comes twice", f[1])
				}
				family, unit, helped, families[f[1]] = f[1], "", false, f[2]
			case f[0] == "UNIT" && len(f) == 3 && f[1] == family && strings.HasSuffix(family, "_"+f[2]):
				unit = f[2]
			case f[0] == "HELP" && len(f) == 3 && f[1] == family && !helped:
				helped = true
			default:
				t.Errorf("line %q after family %s", line, family)
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		want := family
		if families[family] == "counter" {
			want += "_total"
		}
		if m == nil || m[1] != want || !helped || strings.HasSuffix(family, "_bytes") != (unit == "bytes") {
			t.Errorf("line %q of family %s", line, family)
			continue
		}
		value, err := strconv.ParseUint(m[3], 10, 64)
		must(t, err)
		key := m[1] + "{" + m[2] + "}"
		if id := m[1] + labelSet(t, m[2]); series[id] {
			t.Errorf("sample %s comes twice", key)
		} else {
			series[id] = true
		}
		samples[key] = value
	}
	return samples
}

// TestHealth checks that the metrics include the watcher's data.
func TestHealth(t *testing.T) {
	dev := open(t, 1)[0]
	var f health.Fake
	f.Set(0, health.Reading{ECC: true, Corrected: 7, Uncorrected: 1, Clocks: true, Throttle: health.PowerCap | health.HardwareThermal})
	f.Fail(2, errors.New("no answer"))
	infos := []driver.Info{dev.Info(), {Index: 1, Name: "no ECC"}, {Index: 2, Name: "gone"}}
	w, err := health.Watch(&f, infos, health.Options{})
	must(t, err)
	defer w.Close()
	events := make(chan health.Event, 10)
	w.Notify(events)
	for range 2 {
		f.Report(0, 63)
	}
	f.Report(0, 79)
	for seen := 0; seen < 3; {
		if e := <-events; e.Kind == health.KindXID {
			seen++
		}
	}
	for began := time.Now(); w.Status()[2].Err == nil || w.Status()[0].ReadAt.IsZero(); time.Sleep(time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatal("the devices are not read after 30 s")
		}
	}
	s := &metrics.Source{Devices: []*gpu.Device{dev}, Health: w}
	got := scrape(t, s)
	name := `device="0",name="` + dev.Info().Name + `"`
	for key, want := range map[string]uint64{
		"puregpu_health_told{" + name + "}":                                1,
		`puregpu_health_told{device="2",name="gone"}`:                      0,
		"puregpu_xid_errors_total{" + name + `,xid="63"}`:                  2,
		"puregpu_xid_errors_total{" + name + `,xid="79"}`:                  1,
		"puregpu_ecc_errors_total{" + name + `,kind="corrected"}`:          7,
		"puregpu_ecc_errors_total{" + name + `,kind="uncorrected"}`:        1,
		"puregpu_clocks_held_down{" + name + `,reason="power cap"}`:        1,
		"puregpu_clocks_held_down{" + name + `,reason="sync boost"}`:       0,
		"puregpu_clocks_held_down{" + name + `,reason="hardware thermal"}`: 1,
		"puregpu_device_lost{" + name + "}":                                0,
	} {
		if v, ok := got[key]; !ok || v != want {
			t.Errorf("%s is %d (told: %v); want %d", key, v, ok, want)
		}
	}
	for key := range got {
		if strings.HasPrefix(key, "puregpu_ecc") && !strings.Contains(key, name) || strings.HasPrefix(key, "puregpu_clocks") && !strings.Contains(key, name) {
			t.Errorf("%s is told of a device that does not tell it", key)
		}
	}
	var v struct {
		Health []struct {
			Index     int
			XIDs      map[string]uint64
			Corrected *uint64
			Throttle  []string
			Error     string
		}
	}
	must(t, json.Unmarshal([]byte(s.String()), &v))
	if len(v.Health) != 3 || v.Health[0].XIDs["63"] != 2 || *v.Health[0].Corrected != 7 || fmt.Sprint(v.Health[0].Throttle) != "[power cap hardware thermal]" ||
		v.Health[1].Corrected != nil || !strings.Contains(v.Health[2].Error, "no answer") {
		t.Errorf("JSON: %s", s.String())
	}
}

var labelPair = regexp.MustCompile(`^([a-z]+)="((?:[^"\\\n]|\\["\\n])*)"(,|$)`)

// labelSet returns the labels of a sample as a parser compares them: without escapes, ordered by
// name, and without empty labels, which count as absent. Each name may appear once.
func labelSet(t *testing.T, text string) string {
	t.Helper()
	set := map[string]string{}
	for text != "" {
		m := labelPair.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("labels %q", text)
		}
		if _, ok := set[m[1]]; ok {
			t.Errorf("label %s comes twice", m[1])
		}
		set[m[1]] = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(m[2])
		text = text[len(m[0]):]
	}
	maps.DeleteFunc(set, func(_, value string) bool { return value == "" })
	return fmt.Sprintf("%q", set) // sorted by name
}

// TestOpenMetrics checks the samples of devices and pools. The names contain characters that must
// be escaped.
func TestOpenMetrics(t *testing.T) {
	devs := open(t, 2)
	b, err := devs[1].Alloc(gpu.DeviceMem, 1<<20)
	must(t, err)
	defer b.Close()
	h, err := devs[0].Alloc(gpu.HostMem, 4096)
	must(t, err)
	must(t, h.Close())
	p, err := devs[0].NewPool(gpu.PoolOptions{})
	must(t, err)
	closed, err := devs[0].NewPool(gpu.PoolOptions{})
	must(t, err)
	must(t, closed.Close())
	gate, err := gpu.NewSemaphore(0)
	must(t, err)
	must(t, devs[1].Queue(0).Submit(gpu.Order{Wait: []gpu.Point{gate.At(1)}}, gpu.Fill(b.All(), []byte{1})))
	s := &metrics.Source{Devices: []*gpu.Device{devs[0], nil, devs[1]}, Pools: map[string]*gpu.Pool{"a \"b\" \\\n\xff": p, "closed": closed}}
	devs[0].Queue(0).Flush()
	got := scrape(t, s)
	device := func(i int) string { return fmt.Sprintf(`device="%d",name="%s"`, i, devs[i].Info().Name) }
	stats := [2]gpu.Stats{devs[0].Stats(), devs[1].Stats()}
	for key, want := range map[string]uint64{
		"puregpu_submissions_parked{" + device(1) + "}":                           1,
		"puregpu_submissions_parked{" + device(0) + "}":                           0,
		"puregpu_memory_bytes{" + device(1) + `,memory="device"}`:                 1 << 20,
		"puregpu_memory_bytes{" + device(1) + `,memory="host"}`:                   0,
		"puregpu_memory_allocated_bytes_total{" + device(0) + `,memory="host"}`:   4096,
		"puregpu_objects_made_total{" + device(0) + `,kind="event"}`:              uint64(stats[0].Events.Made),
		"puregpu_objects_held{" + device(1) + `,kind="record"}`:                   uint64(stats[1].Records.Held),
		"puregpu_staging_bytes{" + device(0) + `,state="held"}`:                   stats[0].Staging.Held,
		`puregpu_pool_used_bytes{pool="a \"b\" \\\n�ff"}`:                         0,
		"puregpu_buffers{" + device(1) + "}":                                      1,
		"puregpu_memory_peak_bytes{" + device(1) + `,memory="device"}`:            1 << 20,
		"puregpu_submissions_in_flight{" + device(1) + "}":                        0,
		"puregpu_memory_allocated_bytes_total{" + device(1) + `,memory="device"}`: 1 << 20,
		`puregpu_pool_reserved_bytes{pool="a \"b\" \\\n�ff"}`:                     0,
		"puregpu_staging_bytes{" + device(1) + `,state="used"}`:                   0,
		"puregpu_objects_free{" + device(0) + `,kind="timepoint"}`:                uint64(stats[0].Timepoints.Free),
	} {
		if v, ok := got[key]; !ok || v != want {
			t.Errorf("%s is %d (told: %v); want %d", key, v, ok, want)
		}
	}
	for key := range got {
		if strings.Contains(key, "closed") {
			t.Errorf("%s is told, of a closed pool", key)
		}
	}
	must(t, gate.Signal(1))
}

// These names differ, but some become equal if invalid bytes are replaced by U+FFFD alone.
var names = []string{"a\xff", "a\xfe", "a\xff\xff", "a\ufffd", "a\ufffdff", "a\ufffd\ufffd", "a\xffff", "a\xef\xbf", `a\xff`, "a\\ufffd", "a", "", "\xff", "\n", `\n`, "a\r"}

// TestPoolNames checks that each pool gets its own series and JSON member, also if its name is not
// UTF-8.
func TestPoolNames(t *testing.T) {
	dev := open(t, 1)[0]
	s := &metrics.Source{Pools: map[string]*gpu.Pool{}}
	for _, name := range names {
		p, err := dev.NewPool(gpu.PoolOptions{})
		must(t, err)
		s.Pools[name] = p
	}
	used := 0
	for key := range scrape(t, s) {
		if strings.HasPrefix(key, "puregpu_pool_used_bytes{") {
			used++
		}
	}
	if used != len(names) {
		t.Errorf("%d series of %d pools", used, len(names))
	}
	var got struct{ Pools map[string]gpu.PoolStats }
	must(t, json.Unmarshal([]byte(s.String()), &got))
	if len(got.Pools) != len(names) {
		t.Errorf("%d JSON members of %d pools: %v", len(got.Pools), len(names), got.Pools)
	}
	if _, ok := got.Pools["a"]; !ok {
		t.Errorf("a name without anything odd is changed: %v", got.Pools)
	}
}

// A named driver changes the name of its device.
type named struct {
	driver.Driver
	name string
}

func (d named) Open(index int) (driver.Device, error) {
	dev, err := d.Driver.Open(index)
	return namedDevice{dev, d.name}, err
}

type namedDevice struct {
	driver.Device
	name string
}

func (d namedDevice) Info() driver.Info {
	i := d.Device.Info()
	i.Name = d.name
	return i
}

// TestDeviceNames uses devices of several drivers with the same index. Some names of the devices
// are not UTF-8. Each device must get its own series, without the label that marks a device opened
// twice.
func TestDeviceNames(t *testing.T) {
	s := &metrics.Source{}
	for _, name := range names {
		dev, err := gpu.Open(named{simdriver.New(simdriver.Config{}), name}, 0, gpu.Options{})
		must(t, err)
		defer dev.Close()
		s.Devices = append(s.Devices, dev)
	}
	lost := 0
	for key := range scrape(t, s) {
		if strings.Contains(key, "opened=") {
			t.Errorf("%s: no device was opened twice", key)
		}
		if strings.HasPrefix(key, "puregpu_device_lost{") {
			lost++
		}
	}
	if lost != len(names) {
		t.Errorf("%d series of %d devices", lost, len(names))
	}
}

// TestLost checks that the metrics show which device is lost, also after the device was closed.
func TestLost(t *testing.T) {
	d := simdriver.New(simdriver.Config{Devices: 2})
	g, err := gpu.OpenGroup(d, gpu.Options{})
	must(t, err)
	defer g.Close()
	s := &metrics.Source{Devices: g.Devices()}
	lost := func(want ...uint64) {
		t.Helper()
		got := scrape(t, s)
		for i, want := range want {
			key := fmt.Sprintf(`puregpu_device_lost{device="%d",name="%s"}`, i, g.Devices()[i].Info().Name)
			if v, ok := got[key]; !ok || v != want {
				t.Errorf("%s is %d (told: %v); want %d", key, v, ok, want)
			}
		}
	}
	lost(0, 0)
	must(t, d.LoseDevice(1, nil))
	if _, err := g.Devices()[1].Alloc(gpu.DeviceMem, 8); !errors.Is(err, driver.ErrLost) { // this call finds the loss
		t.Errorf("a lost device allocates: %v", err)
	}
	lost(0, 1)
	must(t, g.Close())
	lost(0, 1)
}

// TestOpenedTwice checks that a device that was opened again, for example after a loss, has
// different labels.
func TestOpenedTwice(t *testing.T) {
	d := simdriver.New(simdriver.Config{})
	s := &metrics.Source{}
	for range 2 {
		dev, err := gpu.Open(d, 0, gpu.Options{})
		must(t, err)
		defer dev.Close()
		s.Devices = append(s.Devices, dev)
	}
	b, err := s.Devices[1].Alloc(gpu.DeviceMem, 64)
	must(t, err)
	defer b.Close()
	got := scrape(t, s)
	label := fmt.Sprintf(`device="0",name="%s"`, s.Devices[0].Info().Name)
	if first, second := got["puregpu_buffers{"+label+"}"], got["puregpu_buffers{"+label+`,opened="2"}`]; first != 0 || second != 1 {
		t.Errorf("%d and %d buffers, in %v", first, second, got)
	}
}

// TestEmpty checks the output of sources without devices, with a nil device and a nil pool, and
// with a closed device.
func TestEmpty(t *testing.T) {
	if got := scrape(t, new(metrics.Source)); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := new(metrics.Source).String(); got != `{"Devices":[]}` {
		t.Errorf("%s", got)
	}
	none := &metrics.Source{Devices: []*gpu.Device{nil}, Pools: map[string]*gpu.Pool{"none": nil}}
	if got := scrape(t, none); len(got) != 0 || none.String() != `{"Devices":[]}` {
		t.Errorf("no device and no pool: %v, %s", got, none.String())
	}
	dev := open(t, 1)[0]
	must(t, dev.Close())
	if got := scrape(t, &metrics.Source{Devices: []*gpu.Device{dev}}); len(got) == 0 {
		t.Error("a closed device is not told")
	}
}

// TestMethods checks that HEAD gets no body, and that POST is refused.
func TestMethods(t *testing.T) {
	for method, want := range map[string]int{http.MethodHead: 200, http.MethodPost: 405} {
		w := httptest.NewRecorder()
		new(metrics.Source).ServeHTTP(w, httptest.NewRequest(method, "/metrics", nil))
		if w.Code != want || method == http.MethodHead && w.Body.Len() > 0 {
			t.Errorf("%s: %d, %q", method, w.Code, w.Body)
		}
	}
}

// TestExpvar compares the JSON object with the statistics of the devices and pools.
func TestExpvar(t *testing.T) {
	dev := open(t, 1)[0]
	p, err := dev.NewPool(gpu.PoolOptions{})
	must(t, err)
	var v expvar.Var = &metrics.Source{Devices: []*gpu.Device{dev}, Pools: map[string]*gpu.Pool{"p": p}}
	var got struct {
		Devices []struct {
			Index int
			Name  string
			gpu.Stats
		}
		Pools map[string]gpu.PoolStats
	}
	must(t, json.Unmarshal([]byte(v.String()), &got))
	pool, err := p.Stats()
	must(t, err)
	if len(got.Devices) != 1 || got.Devices[0].Name != dev.Info().Name || got.Devices[0].Stats != dev.Stats() || got.Pools["p"] != pool {
		t.Errorf("%+v", got)
	}
}

// TestWhileWorking reads the metrics while a device works and closes, for the race detector.
func TestWhileWorking(t *testing.T) {
	dev := open(t, 1)[0]
	s := &metrics.Source{Devices: []*gpu.Device{dev}}
	b, err := dev.Alloc(gpu.DeviceMem, 4096)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer dev.Close()
		for range 300 {
			st := dev.Queue(0).NewStream()
			st.Fill(b.All(), []byte{1})
			if err := st.Wait(ctx); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 100 {
		scrape(t, s)
		if !json.Valid([]byte(s.String())) {
			t.Error("no JSON")
		}
	}
	wg.Wait()
}
