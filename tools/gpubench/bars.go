package main

import (
	"fmt"
	"os"
	"slices"
)

// A barChart draws the rows of the group "others" into an SVG file, except the rows that compare
// with byHandMarked. Each kind of work has a bar for each way of doing it.
type barChart struct {
	file  string
	title string
	work  []barGroup
}

// A barGroup has the bars of one kind of work, in nanoseconds.
type barGroup struct {
	name    string
	puregpu []float64          // puregpu's figures, one for each figure in the field others
	others  map[string]float64 // the figures of the other ways, by name
}

func (c *barChart) begin(e *env) {
	c.title = fmt.Sprintf("Time of one operation on one %s: lower is better", e.info.Name)
}

func (c *barChart) remark(string) {}

func (c *barChart) print(r result) {
	if r.With == nil || r.Raw == nil || r.Puregpu == nil {
		return
	}
	name := r.With.Work + ", and wait"
	if r.With.Ahead {
		name = r.With.Work + ", 2,000 ahead"
	}
	i := slices.IndexFunc(c.work, func(g barGroup) bool { return g.name == name })
	if i < 0 {
		i = len(c.work)
		c.work = append(c.work, barGroup{name: name, others: map[string]float64{}})
	}
	c.work[i].puregpu = append(c.work[i].puregpu, *r.Puregpu)
	c.work[i].others[r.With.With] = *r.Raw
}

// end writes the file. It writes none if there is nothing to draw.
func (c *barChart) end() error {
	if len(c.work) == 0 {
		return nil
	}
	if err := os.WriteFile(c.file, c.svg(), 0o666); err != nil {
		return fmt.Errorf("-bars: %w", err)
	}
	return nil
}

// svg draws the chart. Each kind of work has its own scale.
func (c *barChart) svg() []byte {
	const (
		begin, most = 200.0, 470.0 // the place where bars begin, and their greatest length
		thick, gap  = 15.0, 34.0
	)
	y := 50.0
	var body canvas
	for _, g := range c.work {
		type bar struct {
			name string
			time float64
		}
		bars := []bar{{"puregpu", *median(g.puregpu)}}
		longest := bars[0].time
		for _, name := range others {
			if v, ok := g.others[name]; ok {
				bars = append(bars, bar{name, v})
				longest = max(longest, v)
			}
		}
		body.text(20, y, `font-weight="bold"`, g.name)
		y += 8
		for _, b := range bars {
			fill := "#9a9a9a"
			if b.name == "puregpu" {
				fill = "#0072b2"
			}
			body.text(begin-8, y+thick-4, `text-anchor="end"`, b.name)
			body.put(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, begin, y, most*b.time/longest, thick-2, fill)
			body.text(begin+most*b.time/longest+6, y+thick-4, `fill="`+grey+`"`, ns.text(b.time))
			y += thick
		}
		y += gap - thick/2
	}
	var all canvas
	all.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">`, width, y-10)
	all.put(`<rect width="%.0f" height="%.0f" fill="white"/>`, width, y-10)
	all.text(20, 24, `font-size="16"`, c.title)
	all.Write(body.Bytes())
	all.put("</svg>")
	return all.Bytes()
}
