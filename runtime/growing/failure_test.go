package growing_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/growing"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// TestFailedGrowth (B204) lets Grow fail while pages that Shrink has removed are still mapped. The
// size stays, and these pages are unmapped as if Grow had not been called.
func TestFailedGrowth(t *testing.T) {
	d := newSim(t, simdriver.Config{Memory: 4 * page})
	dev := openDevice(t, d, 0, gpu.Options{})
	m := reserve(t, dev, 8*page, 4*page, growing.Options{})
	s := dev.Queue(0).NewStream()
	must(t, d.StallDevice(0))
	must(t, s.Do(gpu.Fill(m.Buffer().All(), []byte{1})))
	must(t, m.Shrink(page))
	wants(t, "growth", m.Grow(6*page), gpu.ErrOutOfMemory, "2097152 are mapped")
	if m.Size() != page || mapped(d, 0) != 4*page {
		t.Errorf("the size is %d, and %d bytes are mapped", m.Size(), mapped(d, 0))
	}
	must(t, d.ResumeDevice(0))
	must(t, s.Wait(minute(t)))
	eventually(t, "the pages are unmapped", func() bool { return mapped(d, 0) == page }, dev)
	must(t, m.Grow(4*page))
	content(t, s, m.Buffer().All())
}

// TestShareWaits grows and shrinks memory while Share waits for pages that were removed from the
// memory.
func TestShareWaits(t *testing.T) {
	needsSharing(t)
	synctest.Test(t, func(t *testing.T) {
		d := newSim(t, simdriver.Config{})
		dev := openDevice(t, d, 0, gpu.Options{})
		m := reserve(t, dev, 8*page, 4*page, growing.Options{})
		must(t, m.Shrink(2*page, testkit.NewSemaphore(t, 0).At(1))) // never
		small, large := make(chan error, 1), make(chan error, 1)
		go func() { small <- m.Share(t.Context(), m, 0, page) }()
		go func() { large <- m.Share(t.Context(), m, 0, 2*page) }()
		synctest.Wait()
		must(t, m.Shrink(page))
		must(t, m.Grow(7*page))
		err, err2 := <-small, <-large
		must(t, err)
		wants(t, "more than the rest", err2, gpu.ErrRange)
		if m.Size() != 8*page || mapped(d, 0) != 7*page {
			t.Errorf("the size is %d, and %d bytes are mapped", m.Size(), mapped(d, 0))
		}
		must(t, m.Close())
		must(t, dev.Close())
	})
}

// TestGivenUp checks that Share, which waits for pages that Shrink has removed, ends when the
// runtime gives the device up.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := simdriver.New(simdriver.Config{})
		defer d.Kill()
		dev := openDevice(t, d, 0, gpu.Options{})
		m := reserve(t, dev, 8*page, 4*page, growing.Options{})
		must(t, d.StallDevice(0))
		must(t, dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(m.Buffer().All(), []byte{1})))
		must(t, m.Shrink(2*page, testkit.NewSemaphore(t, 0).At(1))) // never
		var shared error
		var sharing sync.WaitGroup
		sharing.Go(func() { shared = m.Share(context.Background(), m, 0, page) })
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wants(t, "Shutdown", dev.Shutdown(ctx), driver.ErrBusy)
		sharing.Wait()
		wants(t, "Share", shared, gpu.ErrClosed)
	})
}
