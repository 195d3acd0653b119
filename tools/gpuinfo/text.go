package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/puregpu/puregpu/runtime/dl"
)

// sentence turns err into a sentence: "No CUDA driver: …. Install …."
func (p *probe) sentence(lib *Library, err error) string {
	if lib.Found && p.devices == nil {
		return fmt.Sprintf("%s is there and does not work: %v.", p.name, err)
	}
	if lib.Found && p.absence(err) {
		return fmt.Sprintf("No %s device: the %s is there, but it sees no %s GPU (%s).", strings.ToUpper(p.pkg), p.name, p.vendor, firstLine(err))
	}
	if lib.Found {
		return fmt.Sprintf("No %s device can be used: %v.", strings.ToUpper(p.pkg), err)
	}
	var open *dl.OpenError
	if !errors.As(err, &open) {
		// The error's text begins with the package and the library. The sentence names them
		// already.
		return fmt.Sprintf("No %s: %s.", p.name, strings.TrimPrefix(err.Error(), p.pkg+": "))
	}
	var why []string
	for _, a := range open.Attempts {
		if len(open.Attempts) == 1 || !errors.Is(a.Err, dl.ErrNotFound) {
			why = append(why, fmt.Sprint(a))
		}
	}
	if why == nil {
		why = []string{"not found"}
	}
	s := fmt.Sprintf("No %s: %s.", p.name, strings.Join(why, "; "))
	if h := open.Hint; h != "" {
		s += " " + strings.ToUpper(h[:1]) + h[1:] + "."
	}
	return s
}

// print writes the findings about a library.
func (lib *Library) print(w io.Writer) {
	fmt.Fprintf(w, "%s %s\n", lib.Name, cmp.Or(lib.Version, "of unknown version"))
	line(w, "file", lib.Path)
	line(w, "release of the system's driver", lib.DriverVersion)
	if lib.Source != "" {
		line(w, "found by", fmt.Sprintf("%s, as %s", lib.Source, lib.Asked))
	}
	for _, a := range lib.Attempts {
		if a.Found {
			line(w, "passed over", a.String())
		}
	}
	const most = 8
	lacks := map[string][]string{}
	for _, m := range lib.Missing {
		lacks[m.Set] = append(lacks[m.Set], m.Name)
	}
	for _, status := range []string{"present", "partial", "missing"} {
		var sets []string
		for _, s := range lib.Sets {
			if s.Status != status {
				continue
			}
			text := fmt.Sprintf("%s (%s)", s.Name, s.Since)
			if status == "partial" {
				text = fmt.Sprintf("%s (%s; %d of %d functions, without %s)", s.Name, s.Since, s.Have, s.Total, some(lacks[s.Name]))
			}
			sets = append(sets, text)
		}
		switch {
		case status == "missing" && len(sets) > most: // an old release lacks many
			line(w, fmt.Sprintf("sets missing (%d)", len(sets)), "-explain lists them")
		case sets != nil:
			line(w, fmt.Sprintf("sets %s (%d)", status, len(sets)), strings.Join(sets, ", "))
		}
	}
}

// String returns the candidate and its result.
func (a *Attempt) String() string {
	s := fmt.Sprintf("%s (%s)", cmp.Or(a.File, a.Path), a.Source)
	if a.Version != "" {
		s += ", version " + a.Version
	}
	return s + ": " + a.Error
}

// some lists up to five names. Of more names it lists four, and the number of the others.
func some(names []string) string {
	const most = 4
	if len(names) <= most+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// print writes the findings about a device.
func (d *Device) print(w io.Writer) {
	fmt.Fprintf(w, "%s device %d: %s\n", strings.ToUpper(d.Package), d.Index, cmp.Or(d.Name, "without a name"))
	line(w, "uuid", d.UUID)
	line(w, "PCI address", d.PCIAddress)
	line(w, "compute capability", d.ComputeCapability)
	if d.TotalMemory != 0 {
		line(w, "memory", fmt.Sprintf("%.1f GiB", float64(d.TotalMemory)/(1<<30)))
	}
	if d.FreeMemory != nil {
		line(w, "of it free now", fmt.Sprintf("%.1f GiB", float64(*d.FreeMemory)/(1<<30)))
	}
	if d.MIG {
		line(w, "instance of MIG", "yes")
	}
	for _, a := range attributes {
		if v, ok := d.Attributes[a.name]; ok {
			line(w, a.label, a.kind.format(v))
		}
	}
	for _, e := range d.Errors {
		line(w, "error", e)
	}
}

func (k kind) format(v int64) string {
	switch {
	case k == size && v%1024 == 0:
		return fmt.Sprintf("%d KiB", v/1024)
	case k == size:
		return fmt.Sprintf("%d bytes", v)
	case k == clock:
		return fmt.Sprintf("%d MHz", v/1000)
	case k == answer && v == 0:
		return "no"
	case k == answer && v == 1:
		return "yes"
	}
	return fmt.Sprint(v)
}

// line writes a label and a value. It wraps and indents long values to the width of a page.
func line(w io.Writer, label, value string) {
	if value == "" {
		return
	}
	const indent, width = 4, 110
	fmt.Fprintf(w, "%*s%s:", indent, "", label)
	at := indent + len(label) + 1
	for word := range strings.FieldsSeq(value) {
		if at+1+len(word) > width && at > 2*indent {
			fmt.Fprintf(w, "\n%*s", 2*indent-1, "")
			at = 2*indent - 1
		}
		fmt.Fprintf(w, " %s", word)
		at += 1 + len(word)
	}
	fmt.Fprintln(w)
}
