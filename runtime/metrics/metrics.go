// Package metrics exports statistics of devices and pools for monitoring: as expvar variables, and
// in the OpenMetrics text format, which Prometheus reads. It needs no client library.
//
//	source := &metrics.Source{Devices: devices}
//	http.Handle("/metrics", source)
//	expvar.Publish("gpu", source)
package metrics

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/health"
)

// A Source lists the devices and pools whose metrics are exported. Its fields must not be changed
// once it is in use. Its methods may be called concurrently. The methods take a snapshot of each
// device and pool, submit nothing, and do not wait for a device's work. A closed device keeps its
// last values. A closed pool is omitted.
//
// In the OpenMetrics text, the series of a device and of its health have the labels device and
// name. If Devices has a device that was opened twice, the series of the second have one more
// label: opened="2".
//
// Names are shown in UTF-8, and different names stay different. An invalid byte becomes U+FFFD and
// two hex digits. U+FFFD itself is doubled.
type Source struct {
	Devices []*gpu.Device        // nil devices are skipped
	Pools   map[string]*gpu.Pool // by name; nil pools are skipped
	Health  *health.Watcher      // may be nil; may watch other devices than Devices
}

const contentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

// ServeHTTP answers with all metrics in the text format of OpenMetrics 1.0.
func (s *Source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "metrics are read by GET", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodGet {
		w.Write(s.text()) // an error means that the client disconnected
	}
}

// String returns all metrics as a JSON object, as an [expvar.Var] does.
func (s *Source) String() string {
	type device struct {
		Index int
		Name  string
		gpu.Stats
	}
	var v struct {
		Devices []device
		Pools   map[string]gpu.PoolStats `json:",omitempty"`
		Health  []state                  `json:",omitempty"`
	}
	v.Devices = []device{}
	for _, d := range s.devices() {
		v.Devices = append(v.Devices, device{d.Info().Index, shown(d.Info().Name), d.Stats()})
	}
	v.Pools = s.pools()
	v.Health = s.health()
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and strings can always be encoded
	}
	return string(text)
}

// pools returns the statistics of the open pools, by their shown names.
func (s *Source) pools() map[string]gpu.PoolStats {
	pools := map[string]gpu.PoolStats{}
	for name, p := range s.Pools {
		if p == nil {
			continue
		}
		if stats, err := p.Stats(); err == nil {
			pools[shown(name)] = stats
		}
	}
	return pools
}

// shown returns a name in valid UTF-8. Different names get different results, because two series
// must not have the same labels.
func shown(name string) string {
	if utf8.ValidString(name) && !strings.ContainsRune(name, utf8.RuneError) {
		return name
	}
	var b strings.Builder
	for i, r := range name {
		switch _, size := utf8.DecodeRuneInString(name[i:]); {
		case r != utf8.RuneError:
			b.WriteRune(r)
		case size == 1:
			fmt.Fprintf(&b, "\ufffd%02x", name[i])
		default:
			b.WriteString("\ufffd\ufffd")
		}
	}
	return b.String()
}

// A state is the health of one device for the JSON object.
type state struct {
	Index       int
	Name        string
	XIDs        map[health.XID]uint64 `json:",omitempty"` // number of reports of each XID
	Corrected   *uint64               `json:",omitempty"` // memory errors; nil if the device does not count them
	Uncorrected *uint64               `json:",omitempty"`
	Throttle    []string              `json:",omitempty"`
	NoXIDs      string                `json:",omitempty"` // why there are no XIDs
	Error       string                `json:",omitempty"` // why the source of health fails

	clocks   bool // whether Throttle is known
	throttle health.Throttle
}

// health returns the states of the watched devices, or nil without a watcher.
func (s *Source) health() (all []state) {
	if s.Health == nil {
		return nil
	}
	for _, h := range s.Health.Status() {
		v := state{Index: h.Device.Index, Name: shown(h.Device.Name), XIDs: h.XIDs, clocks: h.Clocks, throttle: h.Throttle}
		if h.ECC {
			v.Corrected, v.Uncorrected = &h.Corrected, &h.Uncorrected
		}
		for _, one := range h.Throttle.Reasons() {
			v.Throttle = append(v.Throttle, one.String())
		}
		if h.NoXIDs != nil {
			v.NoXIDs = h.NoXIDs.Error()
		}
		if h.Err != nil {
			v.Error = h.Err.Error()
		}
		all = append(all, v)
	}
	return all
}

func (s *Source) devices() (all []*gpu.Device) {
	for _, d := range s.Devices {
		if d != nil {
			all = append(all, d)
		}
	}
	return all
}
