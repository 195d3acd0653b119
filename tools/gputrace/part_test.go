package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/internal/tracetest"
)

// TestPartOfABusyDevice checks a part of the trace of a device that is never idle: in the part the
// device is not idle either, and executions that began after the part have times of their commands.
func TestPartOfABusyDevice(t *testing.T) {
	for _, c := range []struct {
		name  string
		early bool // the commands come before their submission in the file
	}{{"commands after their submission", false}, {"commands before it", true}} {
		t.Run(c.name, func(t *testing.T) {
			b := tracetest.New("llama", 0, 1, time.Unix(1800000000, 0))
			b.Events[0].Args.Level = "commands"
			dev := b.Device(0, "NVIDIA H200")
			q, s, nodes := b.Queue(dev, 0, "queue 0"), b.Stream(dev, 1), b.Nodes(dev, "commands of graphs")
			rec := b.Recording(dev, args{Op: "launch", Kernel: "decode"}, args{Op: "launch", Kernel: "sample"})
			b.NodeTimes(dev, "CUPTI 13.0.1", "")
			for i := range traceformat.Time(10) { // each execution runs for a millisecond, and is submitted two milliseconds before it runs
				at := (10 + i) * ms
				commands := func(sub uint64) {
					b.Node(nodes, "decode", at, at+900*µs, args{Sub: sub, Recording: rec})
					b.Node(nodes, "sample", at+900*µs, at+ms, args{Sub: sub, Recording: rec, Command: 1})
				}
				if c.early {
					commands(uint64(i) + 1)
				}
				sub := b.Submit(q, s, tracetest.Submission{Args: args{Op: "execute", Recording: rec, Commands: 2, Graph: true},
					Submitted: at - 2*ms, Issued: at - 2*ms + µs, Begun: at, Ended: at + ms, Done: at + ms + 50*µs})
				if !c.early {
					commands(sub)
				}
			}
			tr, err := load(bytes.NewReader(b.JSON()), window{14*ms + 200*µs, 14*ms + 800*µs, everything.maxEvents})
			if err != nil {
				t.Fatal(err)
			}
			sum := summarize(tr)
			// One execution ran in the part. Two more were submitted in the part, and ran later.
			if sum.Submissions != 3 || sum.CommandTimes.Executions != 3 || sum.CommandTimes.Untimed != 0 {
				t.Errorf("%d submissions, %+v", sum.Submissions, sum.CommandTimes)
			}
			if d := sum.Devices[0]; d.Window != 600*µs || d.Busy != 600*µs || d.Idle != 0 || len(sum.Starved) != 0 {
				t.Errorf("%+v, %+v", d, sum.Starved)
			}
			if p := sum.Critical; len(p) != 3 || p[0].Begin != 14*ms+200*µs || p[2].End != 17*ms {
				t.Errorf("critical path %+v", p)
			}
			if x := sum.Commands[0]; x.Kernel != "decode" || x.Count != 3 || x.Total != 2700*µs {
				t.Errorf("%+v", x)
			}
		})
	}
}
