package collective_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/rendezvous"
)

// TestNil checks that Stream.Do returns ErrArgument for a group of a nil or zero communicator, and
// that the stream fails with this error.
func TestNil(t *testing.T) {
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
	for _, c := range []*collective.Communicator{nil, new(collective.Communicator)} {
		s := dev.Queue(0).NewStream()
		if err := s.Do(c.Group()); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%v", err)
		}
		if err := s.Wait(minute(t)); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%v", err)
		}
	}
}

// TestOtherDevice submits and records a group on a device other than the communicator's. The
// devices have the same type, so the error must contain the numbers of both.
func TestOtherDevice(t *testing.T) {
	g, comms := openCommunicators(t, newSim(t, simdriver.Config{Devices: 2}), 2, collective.Options{})
	other := g.Devices()[1]
	b := allocate(t, g.Devices()[0], 64)
	_, recorded := commandBuffer(t, other, gpu.AutoMode).Add(comms[0].Group(sum(b)))
	for what, err := range map[string]error{
		"a queue":     other.Queue(0).Submit(gpu.Order{}, comms[0].Group(sum(b))),
		"a stream":    other.Queue(0).NewStream().Do(comms[0].Group(sum(b))),
		"a recording": recorded,
	} {
		if !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), "device 0") || !strings.Contains(err.Error(), "device 1") {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, comms[0].Err())
}

// TestOptions checks that New says which field of the Options is wrong. A Rank of 0 is refused if
// Count is missing too and the rendezvous knows another rank. Otherwise every process would be rank
// 0.
func TestOptions(t *testing.T) {
	dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
	id, err := collective.NewID(dev)
	must(t, err)
	second := rendezvous.TCP{At: rendezvous.Place{Rank: 1, Count: 2}}
	for text, o := range map[string]collective.Options{
		"Options.Rank is 0, and the Rendezvous says that this process is rank 1: set Rank to -1": {Rendezvous: second},
		"Options.Rank is -1, and there is no Rendezvous that knows the rank":                     {Rank: -1, ID: id, Count: 1},
		"Options.Count is 0, and there is no Rendezvous that knows the count":                    {ID: id},
		"Options.ID is zero, and there is no Rendezvous that shares an id":                       {Count: 1},
	} {
		if _, err := collective.New(t.Context(), dev, o); !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
}

// TestForgottenPlaceOfDevices checks that NewAll asks the rendezvous if Rank and Count are missing.
// Otherwise every process would make a communicator of its own devices alone.
func TestForgottenPlaceOfDevices(t *testing.T) {
	d := newSim(t, simdriver.Config{Devices: 2})
	g, err := gpu.OpenGroup(d, gpu.Options{}, 0, 1)
	must(t, err)
	defer g.Close()
	second := rendezvous.TCP{At: rendezvous.Place{Rank: 1, Count: 2}}
	comms, err := collective.NewAll(t.Context(), g.Devices(), collective.Options{Rendezvous: second})
	if !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), "this process is rank 1: set Rank to -1") || comms != nil {
		t.Errorf("%d communicators, %v", len(comms), err)
	}
}

// TestNoContext checks that calls that take a context return ErrArgument if the context is nil.
func TestNoContext(t *testing.T) {
	g, comms := openCommunicators(t, newSim(t, simdriver.Config{Devices: 2}), 2, collective.Options{})
	dev, c := g.Devices()[0], comms[0]
	id, err := collective.NewID(dev)
	must(t, err)
	for name, call := range map[string]func() error{
		"New": func() error {
			_, err := collective.New(noContext, dev, collective.Options{ID: id, Count: 1})
			return err
		},
		"NewAll":       func() error { _, err := collective.NewAll(noContext, g.Devices(), collective.Options{}); return err },
		"Split":        func() error { _, err := c.Split(noContext, 0, 0); return err },
		"Shrink":       func() error { _, err := c.Shrink(noContext, true, 1); return err },
		"NewWindow":    func() error { _, err := c.NewWindow(noContext, allocate(t, dev, 4096), false); return err },
		"Suspend":      func() error { return c.Suspend(noContext) },
		"Resume":       func() error { return c.Resume(noContext) },
		"GroupContext": func() error { return dev.Queue(0).Submit(gpu.Order{}, c.GroupContext(noContext)) },
		"Shutdown":     func() error { return c.Shutdown(noContext) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("panics: %v", p)
				}
			}()
			if err := call(); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("%v", err)
			}
		})
	}
	must(t, c.Err())
}
