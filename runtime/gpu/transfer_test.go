package gpu_test

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestLargeTransferWithLittlePinnedMemory reads and writes a range so large that several goroutines
// may move it, with pinned memory for only a few pieces.
func TestLargeTransferWithLittlePinnedMemory(t *testing.T) {
	const stage = 4096
	for blocks := uint64(1); blocks < 8; blocks++ {
		d := newSim(t, simdriver.Config{HostMemory: blocks * stage})
		dev := openDevice(t, d, 0, gpu.Options{StageSize: stage})
		b, data := allocate(t, dev, 100*stage+1), bytes.Repeat([]byte("0123456789abc"), (100*stage+1)/13+1)[:100*stage+1]
		st, got := dev.Queue(0).NewStream(), &memoryFile{data: make([]byte, 100*stage+1)}
		for _, op := range []gpu.Op{gpu.ReadFrom(b.All(), bytes.NewReader(data), 0), gpu.WriteTo(got, 0, b.All())} {
			for dev.Stats().Staging.Used > 0 { // until the last pieces have given their blocks back
				runtime.Gosched()
			}
			if err := errors.Join(st.Do(op), st.Wait(in(t, time.Minute))); err != nil {
				t.Fatalf("pinned memory for %d pieces: %v", blocks, err)
			}
		}
		if !bytes.Equal(got.data, data) {
			t.Errorf("pinned memory for %d pieces: other data came back", blocks)
		}
		must(t, dev.Close())
	}
}
