package drivers

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Errors of [Find].
var (
	ErrNoDevice  = errors.New("no such device")
	ErrAmbiguous = errors.New("more than one device")
	ErrSpec      = errors.New("not a device's number, UUID or PCI address")
)

// Find finds a device of a driver and returns its index, for gpu.Open. spec is one of
//
//   - the device's number in the driver: 0
//   - the device's UUID, as nvidia-smi -L prints it: GPU-5ebe9087-…; the first characters are
//     enough if no other device's UUID begins with them
//   - the device's PCI address, as nvidia-smi or lspci prints it: 00000000:3B:00.0, 0000:3b:00.0,
//     3b:00.0 or 3b:00
//
// Omitted parts of an address match any value. If spec does not select exactly one device, the
// error lists devices. A nil driver is an error.
func Find(d driver.Driver, spec string) (index int, err error) {
	if d == nil {
		return 0, fmt.Errorf("drivers: find device %q: the driver is nil: open one with Open or Best, and look at the error: %w", spec, ErrNoDevice)
	}
	devices, err := d.Devices()
	if err != nil {
		return 0, fmt.Errorf("drivers: find device %q: %w", spec, err)
	}
	match, err := parse(spec)
	if err != nil {
		return 0, fmt.Errorf("drivers: find device %q: %w; %s", spec, err, list(d, devices))
	}
	var found []driver.Info
	for _, info := range devices {
		if match(info) {
			found = append(found, info)
		}
	}
	switch len(found) {
	case 0:
		return 0, fmt.Errorf("drivers: find device %q: %w; %s", spec, ErrNoDevice, list(d, devices))
	case 1:
		return found[0].Index, nil
	}
	return 0, fmt.Errorf("drivers: find device %q: %w has that name, give more of it; %s", spec, ErrAmbiguous, list(d, found))
}

// list lists devices for an error.
func list(d driver.Driver, devices []driver.Info) string {
	if len(devices) == 0 {
		return fmt.Sprintf("driver %s has none", d.Name())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "driver %s has", d.Name())
	for _, info := range devices {
		fmt.Fprintf(&b, "\n\t%d: %s, %s", info.Index, info.Name, uuidText(info.UUID))
		if info.PCI != "" {
			fmt.Fprintf(&b, ", %s", info.PCI)
		}
	}
	return b.String()
}

// parse returns a function that reports whether a device matches spec.
func parse(spec string) (match func(driver.Info) bool, err error) {
	if n, err := strconv.ParseUint(spec, 10, 64); err == nil {
		return func(info driver.Info) bool { return uint64(info.Index) == n }, nil
	}
	if id, ok := cutPrefixFold(spec, "GPU-", "MIG-"); ok {
		// A UUID has 16 bytes. For some drivers these bytes are text.
		if !isUUID(id) {
			return nil, ErrSpec
		}
		return func(info driver.Info) bool {
			_, own, _ := strings.Cut(uuidText(info.UUID), "-")
			return len(id) <= len(own) && strings.EqualFold(own[:len(id)], id)
		}, nil
	}
	if want, ok := parsePCI(spec); ok {
		return func(info driver.Info) bool {
			own, ok := parsePCI(info.PCI)
			return ok && want.matches(own)
		}, nil
	}
	return nil, ErrSpec
}

func cutPrefixFold(s string, prefixes ...string) (string, bool) {
	for _, p := range prefixes {
		if len(s) >= len(p) && strings.EqualFold(s[:len(p)], p) {
			return s[len(p):], true
		}
	}
	return s, false
}

// isUUID reports whether s can be the beginning of a UUID.
func isUUID(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' })
}

// uuidText formats a UUID as nvidia-smi does. UUIDs of AMD's GPUs are text already.
func uuidText(id [16]byte) string {
	if !slices.ContainsFunc(id[:], func(c byte) bool { return c <= ' ' || c > '~' }) {
		return "GPU-" + string(id[:])
	}
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// A pci is a PCI address. In an address to search for, domain and function are -1 if they are left
// out, and then match any value.
type pci struct{ domain, bus, device, function int64 }

func (want pci) matches(own pci) bool {
	return (want.domain < 0 || want.domain == own.domain) && want.bus == own.bus && want.device == own.device &&
		(want.function < 0 || own.function < 0 || want.function == own.function)
}

// parsePCI parses [domain:]bus:device[.function] in hexadecimal.
func parsePCI(s string) (a pci, ok bool) {
	a = pci{domain: -1, function: -1}
	if rest, function, found := strings.Cut(s, "."); found {
		if a.function, ok = hex(function, 4); !ok {
			return a, false
		}
		s = rest
	}
	parts := strings.Split(s, ":")
	if len(parts) == 3 {
		if a.domain, ok = hex(parts[0], 32); !ok {
			return a, false
		}
		parts = parts[1:]
	}
	if len(parts) != 2 {
		return a, false
	}
	if a.bus, ok = hex(parts[0], 8); !ok {
		return a, false
	}
	a.device, ok = hex(parts[1], 8)
	return a, ok
}

func hex(s string, bits int) (int64, bool) {
	n, err := strconv.ParseUint(s, 16, bits)
	return int64(n), err == nil
}
