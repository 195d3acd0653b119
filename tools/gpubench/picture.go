package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
)

// A picture draws the bus bandwidth of all-reduces, by their size, into an SVG file.
type picture struct {
	file    string
	title   string
	caption string // the first remark
	lines   [3]line
}

// A line is the curve of PyTorch, or of puregpu in one way.
type line struct {
	name   string
	points map[uint64]float64 // GB/s by size in bytes
}

func (p *picture) begin(e *env) {
	p.title = fmt.Sprintf("All-reduce of float32 on %d × %s", e.count, e.info.Name)
	for i, name := range []string{string(pytorch), "puregpu, " + string(inOne), "puregpu, " + string(inMany)} {
		p.lines[i] = line{name, map[uint64]float64{}}
	}
}

func (p *picture) remark(text string) {
	if p.caption == "" {
		p.caption = text
	}
}

func (p *picture) print(r result) {
	if r.Of == nil || r.Of.Figure != busBandwidth || r.Puregpu == nil {
		return
	}
	if r.Raw != nil { // PyTorch was measured beside each way: draw PyTorch's better figure
		raw := p.lines[0].points
		raw[r.Of.Bytes] = max(raw[r.Of.Bytes], *r.Raw)
	}
	i := 1
	if r.Of.Way == inMany {
		i = 2
	}
	p.lines[i].points[r.Of.Bytes] = *r.Puregpu
}

// end writes the file. It writes none if there is nothing to draw.
func (p *picture) end() error {
	if len(p.sizes()) == 0 {
		return nil
	}
	if err := os.WriteFile(p.file, p.svg(), 0o666); err != nil {
		return fmt.Errorf("-svg: %w", err)
	}
	return nil
}

// sizes returns all sizes in order.
func (p *picture) sizes() []uint64 {
	all := map[uint64]struct{}{}
	for _, l := range p.lines {
		for size := range l.points {
			all[size] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// The picture's size, and the place of the grid in it.
const (
	width, height            = 800.0, 440.0
	left, right, top, bottom = 70.0, 780.0, 60.0, 370.0
	grey                     = "#555555"
)

// strokes are the styles of the lines, distinct without colours too.
var strokes = [3]struct{ color, dash, marker string }{
	{grey, "6 4", "M%.1f %.1fm-4 -4h8v8h-8z"},                                      // square
	{"#0072b2", "none", "M%.1f %.1fm-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z"}, // circle
	{"#d55e00", "2 3", "M%.1f %.1fm0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z"},            // diamond
}

// svg draws the picture.
func (p *picture) svg() []byte {
	sizes, highest := p.sizes(), 0.0
	for _, l := range p.lines {
		for _, rate := range l.points {
			highest = max(highest, rate)
		}
	}
	first, last := math.Log2(float64(sizes[0])), math.Log2(float64(sizes[len(sizes)-1]))
	x := func(size uint64) float64 {
		return left + 15 + (right-left-30)*(math.Log2(float64(size))-first)/max(last-first, 1)
	}
	step := niceStep(highest)
	steps := max(math.Ceil(highest/step), 1)
	y := func(rate float64) float64 { return bottom - (bottom-top)*rate/(step*steps) }

	var c canvas
	c.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">`, width, height)
	c.put(`<rect width="%.0f" height="%.0f" fill="white"/>`, width, height)
	c.text(left, 24, `text-anchor="start" font-size="16"`, p.title)
	c.text(left, 44, `text-anchor="start" fill="`+grey+`"`, p.caption)
	for i := 0.0; i <= steps; i++ {
		c.line(left, y(i*step), right, y(i*step), `stroke="#dddddd"`)
		c.text(left-8, y(i*step)+4, `text-anchor="end"`, fmt.Sprintf("%.4g", i*step))
	}
	for i, size := range sizes {
		c.line(x(size), bottom, x(size), bottom+5, `stroke="`+grey+`"`)
		if len(sizes) <= 11 || i%2 == 0 {
			c.text(x(size), bottom+20, `text-anchor="middle"`, sizeText(size))
		}
	}
	c.line(left, top, left, bottom, `stroke="`+grey+`"`)
	c.line(left, bottom, right, bottom, `stroke="`+grey+`"`)
	c.text((left+right)/2, bottom+45, `text-anchor="middle"`, "size, on each rank")
	c.text(0, 0, fmt.Sprintf(`text-anchor="middle" transform="translate(22 %.0f) rotate(-90)"`, (top+bottom)/2), "bus bandwidth, GB/s")
	legend := top + 20
	for i, l := range p.lines {
		if len(l.points) == 0 {
			continue
		}
		s := strokes[i]
		style := fmt.Sprintf(`stroke="%s" stroke-width="2" stroke-dasharray="%s"`, s.color, s.dash)
		var path []string
		for _, size := range slices.Sorted(maps.Keys(l.points)) {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x(size), y(l.points[size])))
			c.put(`<path d="`+s.marker+`" fill="%s"/>`, x(size), y(l.points[size]), s.color)
		}
		c.put(`<polyline points="%s" fill="none" %s/>`, strings.Join(path, " "), style)
		c.line(left+15, legend, left+55, legend, style)
		c.put(`<path d="`+s.marker+`" fill="%s"/>`, left+35, legend, s.color)
		c.text(left+63, legend+4, `text-anchor="start"`, l.name)
		legend += 20
	}
	c.put("</svg>")
	return c.Bytes()
}

// A canvas is the text of the drawing so far, an element a line.
type canvas struct{ bytes.Buffer }

func (c *canvas) put(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

func (c *canvas) line(x1, y1, x2, y2 float64, style string) {
	c.put(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>`, x1, y1, x2, y2, style)
}

func (c *canvas) text(x, y float64, style, s string) {
	fmt.Fprintf(c, `<text x="%.1f" y="%.1f" %s>`, x, y, style)
	xml.EscapeText(c, []byte(s))
	c.put("</text>")
}

// niceStep returns the distance between grid lines from zero to a value: 1, 2 or 5 times a power of
// ten, such that six lines above zero are enough.
func niceStep(highest float64) float64 {
	if highest <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(highest/6)))
	for _, m := range []float64{1, 2, 5} {
		if highest <= 6*m*power {
			return m * power
		}
	}
	return 10 * power
}
