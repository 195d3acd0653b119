package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
)

// A result is the outcome of a row.
type result struct {
	Row     string      `json:"row"`
	Unit    unit        `json:"unit"`
	Raw     *float64    `json:"raw,omitempty"`
	Puregpu *float64    `json:"puregpu,omitempty"`
	Ratio   *float64    `json:"ratio,omitempty"` // to raw, or to another row of the bench
	Goal    *goalResult `json:"goal,omitempty"`
	Rounds  int         `json:"rounds,omitempty"`
	NotRun  string      `json:"not_run,omitempty"`
	Error   string      `json:"error,omitempty"`
	Of      *allReduce  `json:"all_reduce,omitempty"`
	With    *comparison `json:"with,omitempty"`

	detail bool
}

type goalResult struct {
	Max float64 `json:"max,omitempty"`
	Min float64 `json:"min,omitempty"`
	Of  measure `json:"of,omitempty"` // "": the unit; "raw" or "base": a multiple of that
	OK  bool    `json:"ok"`
}

func (r *result) bad() bool { return r.Error != "" || r.Goal != nil && !r.Goal.OK }

// A printer prints results as they come.
type printer interface {
	begin(e *env)
	remark(text string) // a remark about the results that follow
	print(r result)
	end() error
}

// printers pass everything to several printers.
type printers []printer

func (all printers) begin(e *env) {
	for _, p := range all {
		p.begin(e)
	}
}

func (all printers) remark(text string) {
	for _, p := range all {
		p.remark(text)
	}
}

func (all printers) print(r result) {
	for _, p := range all {
		p.print(r)
	}
}

func (all printers) end() (err error) {
	for _, p := range all {
		err = errors.Join(err, p.end())
	}
	return err
}

// table prints for people.
type table struct {
	w    io.Writer
	last string // why the last row without values was not run, or failed
}

func (t *table) begin(e *env) {
	fmt.Fprintf(t.w, "%s on %s, %s\n", e.info.Name, e.drv.Name(), platform())
	fmt.Fprintf(t.w, "%-52s %10s %10s %8s %10s %4s\n", "row", "raw", "puregpu", "ratio", "goal", "ok")
}

func (t *table) remark(text string) { fmt.Fprintln(t.w, strings.ReplaceAll(text, "\n", "\n\t")) }

func (t *table) print(r result) {
	if r.detail {
		return
	}
	why := "failed: " + r.Error
	if r.NotRun != "" {
		why = r.NotRun
	}
	if r.NotRun != "" || r.Error != "" {
		if why == t.last {
			why = "as above"
		} else {
			t.last = why
		}
		fmt.Fprintf(t.w, "%-52s %s\n", r.Row, strings.ReplaceAll(why, "\n", "\n\t"))
		return
	}
	ratio, text, ok := "-", "-", "-"
	if r.Ratio != nil {
		ratio = fmt.Sprintf("%.3f", *r.Ratio)
	}
	if g := r.Goal; g != nil {
		text, ok = goal{max: g.Max, min: g.Min, of: g.Of}.text(r.Unit), "ok"
		if !g.OK {
			ok = "MISS"
		}
	}
	fmt.Fprintf(t.w, "%-52s %10s %10s %8s %10s %4s\n", r.Row, figure(r.Unit, r.Raw), figure(r.Unit, r.Puregpu), ratio, text, ok)
}

func (t *table) end() error { return nil }

// figure formats a value, or a dash if there is none.
func figure(u unit, v *float64) string {
	if v == nil {
		return "-"
	}
	return u.text(*v)
}

// text formats a value with its unit, to about three digits.
func (u unit) text(v float64) string {
	switch {
	case u == gigabytes && v >= 1e3:
		return fmt.Sprintf("%.0f %s", v, u)
	case u != ns:
		return fmt.Sprintf("%.3g %s", v, u)
	case v < 10:
		return fmt.Sprintf("%.2g ns", v)
	case v < 1e3:
		return fmt.Sprintf("%.0f ns", v)
	case v < 1e6:
		return fmt.Sprintf("%.3g µs", v/1e3)
	}
	return fmt.Sprintf("%.3g ms", v/1e6)
}

func platform() string {
	return fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// document prints one JSON object for programs.
type document struct {
	w    io.Writer
	body contents
}

// contents are the fields of a document.
type contents struct {
	Device   string   `json:"device"`
	Driver   string   `json:"driver"`
	Platform string   `json:"platform"`
	CPUs     int      `json:"cpus"`
	Remarks  []string `json:"remarks,omitempty"`
	Rows     []result `json:"rows"`
}

func (d *document) begin(e *env) {
	d.body.Device, d.body.Driver, d.body.Platform, d.body.CPUs = e.info.Name, e.drv.Name(), platform(), runtime.GOMAXPROCS(0)
}

func (d *document) remark(text string) { d.body.Remarks = append(d.body.Remarks, text) }

func (d *document) print(r result) { d.body.Rows = append(d.body.Rows, r) }

func (d *document) end() error {
	enc := json.NewEncoder(d.w)
	enc.SetIndent("", "\t")
	return enc.Encode(d.body)
}
