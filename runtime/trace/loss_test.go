package trace

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/observe"
)

// TestCommunicatorLoss checks that the record of a failed communicator names the communicator and
// the reason.
func TestCommunicatorLoss(t *testing.T) {
	tracer, err := NewTracer(TracerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{Tracer: tracer})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	tracer.open()[0].Happened(observe.Lost, time.Now(), "", 0, &collective.Error{Name: "gradients", Rank: 1, Count: 2, Err: io.EOF})
	records := make([]Record, 100)
	var lost []Record
	for _, r := range records[:tracer.Take(records)] {
		if r.Kind == KindLost {
			lost = append(lost, r)
		}
	}
	if len(lost) != 1 || lost[0].Communicator != "gradients" || lost[0].Rank != 1 || lost[0].Ranks != 2 || !errors.Is(lost[0].Err, io.EOF) || lost[0].Device != dev {
		t.Errorf("losses in the trace: %+v", lost)
	}
}
