package engine

import (
	"context"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A reusingDevice gives a new event the handle of a destroyed one. A driver whose handles are
// addresses may also use a handle again.
type reusingDevice struct {
	driver.Device
	n         int
	free      []driver.Event
	destroyed func() // called once, after the next event is destroyed
}

func (v *reusingDevice) NewEvent() (h driver.Event, err error) {
	if n := len(v.free); n > 0 {
		h, v.free = v.free[n-1], v.free[:n-1]
		return h, nil
	}
	v.n++
	return driver.Event(v.n), nil
}

func (v *reusingDevice) DestroyEvent(h driver.Event) error {
	v.free = append(v.free, h)
	if f := v.destroyed; f != nil {
		v.destroyed = nil
		f()
	}
	return nil
}

// TestTrimWhileGrowing makes events while EventPool.Trim destroys others. The new events get the
// handles of the destroyed events. At the end EventPool.close must destroy all events that are
// left.
func TestTrimWhileGrowing(t *testing.T) {
	v := new(reusingDevice)
	p := &EventPool{dev: &Device{Native: v}, batch: 4}
	grow := func() {
		if err := p.grow(); err != nil {
			t.Error(err)
		}
	}
	grow()
	grow()
	v.destroyed = grow
	if err := p.Trim(); err != nil {
		t.Error(err)
	}
	if s := p.statistics(); s.Held != s.Free || s.Held != v.n-len(v.free) {
		t.Errorf("%+v, and the driver has %d", s, v.n-len(v.free))
	}
	if err := p.close(context.Background()); err != nil {
		t.Error(err)
	}
	if len(v.free) != v.n {
		t.Errorf("%d of %d events are left", v.n-len(v.free), v.n)
	}
}
