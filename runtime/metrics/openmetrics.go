package metrics

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/health"
)

// A family is a metric family of OpenMetrics: the samples with one name. For a counter, the names
// of the samples end in _total.
type family struct {
	name, kind, unit, help string
	samples                func(add func(value uint64, labels ...string))
}

// text returns the families in the text format of OpenMetrics 1.0. See
// https://prometheus.io/docs/specs/om/open_metrics_spec/
func (s *Source) text() []byte {
	var b bytes.Buffer
	for _, f := range s.families() {
		suffix := ""
		if f.kind == "counter" {
			suffix = "_total"
		}
		fmt.Fprintf(&b, "# TYPE %s %s\n", f.name, f.kind)
		if f.unit != "" {
			fmt.Fprintf(&b, "# UNIT %s %s\n", f.name, f.unit)
		}
		fmt.Fprintf(&b, "# HELP %s %s\n", f.name, f.help)
		f.samples(func(value uint64, labels ...string) {
			b.WriteString(f.name + suffix)
			for i := 0; i < len(labels); i += 2 {
				b.WriteByte("{,"[min(i, 1)])
				fmt.Fprintf(&b, `%s="%s"`, labels[i], escape.Replace(labels[i+1]))
			}
			fmt.Fprintf(&b, "} %d\n", value)
		})
	}
	b.WriteString("# EOF\n")
	return b.Bytes()
}

// escape escapes the value of a label.
var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// families returns all metric families. It takes one snapshot of each device and pool, so that the
// samples of a device agree.
func (s *Source) families() []family {
	type snapshot struct {
		device []string // labels of the device
		gpu.Stats
	}
	var devices []snapshot
	label := labeller()
	for _, d := range s.devices() {
		i := d.Info()
		devices = append(devices, snapshot{label(i.Index, shown(i.Name)), d.Stats()})
	}
	pools := s.pools()
	names := slices.Sorted(maps.Keys(pools))

	// each returns a function that adds a sample for each device and each value of a label.
	each := func(label string, values []string, of func(s *gpu.Stats) []uint64) func(func(uint64, ...string)) {
		return func(add func(uint64, ...string)) {
			for i := range devices {
				for k, v := range of(&devices[i].Stats) {
					labels := slices.Clone(devices[i].device)
					if label != "" {
						labels = append(labels, label, values[k])
					}
					add(v, labels...)
				}
			}
		}
	}
	objects := func(of func(o *gpu.ObjectStats) int) func(func(uint64, ...string)) {
		return each("kind", []string{"event", "timepoint", "record"}, func(s *gpu.Stats) []uint64 {
			return []uint64{uint64(of(&s.Events)), uint64(of(&s.Timepoints)), uint64(of(&s.Records))}
		})
	}
	ofPools := func(of func(p gpu.PoolStats) uint64) func(func(uint64, ...string)) {
		return func(add func(uint64, ...string)) {
			for _, name := range names {
				add(of(pools[name]), "pool", name)
			}
		}
	}
	where := []string{"device", "host"}
	all := []family{
		{"puregpu_device_lost", "gauge", "", "1 if the device is lost, and takes no more work; else 0.",
			each("", nil, func(s *gpu.Stats) []uint64 {
				if s.Lost {
					return []uint64{1}
				}
				return []uint64{0}
			})},
		{"puregpu_submissions_parked", "gauge", "", "Submissions that are not issued yet.",
			each("", nil, func(s *gpu.Stats) []uint64 { return []uint64{uint64(s.Parked)} })},
		{"puregpu_submissions_in_flight", "gauge", "", "Submissions issued and not known to be done.",
			each("", nil, func(s *gpu.Stats) []uint64 { return []uint64{uint64(s.InFlight)} })},
		{"puregpu_buffers", "gauge", "", "Live buffers.",
			each("", nil, func(s *gpu.Stats) []uint64 { return []uint64{uint64(s.Buffers)} })},
		{"puregpu_memory_bytes", "gauge", "bytes", "Bytes that live buffers have allocated, of the device's memory or of the host's.",
			each("memory", where, func(s *gpu.Stats) []uint64 { return []uint64{s.Device.Live, s.Host.Live} })},
		{"puregpu_memory_peak_bytes", "gauge", "bytes", "The most bytes that live buffers have had at a time.",
			each("memory", where, func(s *gpu.Stats) []uint64 { return []uint64{s.Device.Peak, s.Host.Peak} })},
		{"puregpu_memory_allocated_bytes", "counter", "bytes", "Bytes that buffers have ever allocated.",
			each("memory", where, func(s *gpu.Stats) []uint64 { return []uint64{s.Device.Allocated, s.Host.Allocated} })},
		{"puregpu_staging_bytes", "gauge", "bytes", "Pinned memory through which data of programs goes: what is held, and what of it is used.",
			each("state", []string{"held", "used"}, func(s *gpu.Stats) []uint64 { return []uint64{s.Staging.Held, s.Staging.Used} })},
		{"puregpu_objects_held", "gauge", "", "Objects in pools, which Device.Trim can give back.", objects(func(o *gpu.ObjectStats) int { return o.Held })},
		{"puregpu_objects_free", "gauge", "", "Objects in pools that are not in use.", objects(func(o *gpu.ObjectStats) int { return o.Free })},
		{"puregpu_objects_made", "counter", "", "Objects that pools have ever made.", objects(func(o *gpu.ObjectStats) int { return o.Made })},
		{"puregpu_pool_reserved_bytes", "gauge", "bytes", "Bytes that a memory pool has from the system.", ofPools(func(p gpu.PoolStats) uint64 { return p.Reserved })},
		{"puregpu_pool_reserved_peak_bytes", "gauge", "bytes", "The most bytes that a memory pool has had from the system.", ofPools(func(p gpu.PoolStats) uint64 { return p.ReservedHigh })},
		{"puregpu_pool_used_bytes", "gauge", "bytes", "Bytes of a memory pool in allocations.", ofPools(func(p gpu.PoolStats) uint64 { return p.Used })},
		{"puregpu_pool_used_peak_bytes", "gauge", "bytes", "The most bytes of a memory pool that were in allocations.", ofPools(func(p gpu.PoolStats) uint64 { return p.UsedHigh })},
	}
	if s.Health != nil {
		all = append(all, s.healthFamilies()...)
	}
	return all
}

// labeller returns a function that returns a device's labels. No two samples may have the same
// labels. So the returned function adds one more label if it is called again with the same index
// and name.
func labeller() func(index int, name string) []string {
	opened := map[[2]string]int{}
	return func(index int, name string) []string {
		id := [2]string{fmt.Sprint(index), name}
		labels := []string{"device", id[0], "name", id[1]}
		if opened[id]++; opened[id] > 1 {
			labels = append(labels, "opened", fmt.Sprint(opened[id]))
		}
		return labels
	}
}

// healthFamilies returns the metric families of health. It takes one snapshot of the watched
// devices.
func (s *Source) healthFamilies() []family {
	states, label := s.health(), labeller()
	labels := make([][]string, len(states))
	for i, v := range states {
		labels[i] = label(v.Index, v.Name)
	}
	// each returns a function that adds the samples of each device.
	each := func(of func(v *state, add func(value uint64, more ...string))) func(func(uint64, ...string)) {
		return func(add func(uint64, ...string)) {
			for i := range states {
				of(&states[i], func(value uint64, more ...string) { add(value, append(slices.Clone(labels[i]), more...)...) })
			}
		}
	}
	bit := map[bool]uint64{true: 1}
	return []family{
		{"puregpu_health_told", "gauge", "", "1 if the source of health works for the device, else 0.",
			each(func(v *state, add func(uint64, ...string)) { add(bit[v.Error == ""]) })},
		{"puregpu_xid_errors", "counter", "", "XID errors that the system's driver reported since the device was watched, by number.",
			each(func(v *state, add func(uint64, ...string)) {
				for _, xid := range slices.Sorted(maps.Keys(v.XIDs)) {
					add(v.XIDs[xid], "xid", fmt.Sprint(uint32(xid)))
				}
			})},
		{"puregpu_ecc_errors", "counter", "", "Memory errors that ECC found since the system's driver was loaded.",
			each(func(v *state, add func(uint64, ...string)) {
				if v.Corrected != nil {
					add(*v.Corrected, "kind", "corrected")
					add(*v.Uncorrected, "kind", "uncorrected")
				}
			})},
		{"puregpu_clocks_held_down", "gauge", "", "1 if this reason holds the clocks of the device down, else 0.",
			each(func(v *state, add func(uint64, ...string)) {
				if !v.clocks {
					return
				}
				for reason := health.PowerCap; reason <= health.SyncBoost; reason <<= 1 {
					add(bit[v.throttle&reason != 0], "reason", reason.String())
				}
			})},
	}
}
