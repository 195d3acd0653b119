package control_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/runtime/control"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/growing"
)

// TestRandomOwners runs loops from several goroutines. Their bodies may be shared or closed, and
// another goroutine shrinks and grows memory that the bodies write. Each loop has its own counter
// and scratch memory, so its result is known unless it fails with ErrRange.
func TestRandomOwners(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	each(t, func(t *testing.T, r *rig, _ bool) {
		shared, err := growing.Reserve(r.dev, 1<<30, growing.Options{})
		if errors.Is(err, gpu.ErrUnsupported) {
			t.Skip("no growing memory")
		}
		check(t, err)
		page := shared.Granularity()
		check(t, shared.Grow(2*page))
		var workers sync.WaitGroup
		end := make(chan struct{})
		var changer sync.WaitGroup
		changer.Go(func() {
			random := rand.New(rand.NewPCG(7, 7))
			for {
				select {
				case <-end:
					return
				default:
				}
				check(t, shared.Shrink(random.Uint64N(3)*page, r.dev.Queue(0).NewStream().Point()))
				check(t, shared.Grow(random.Uint64N(3)*page))
			}
		})
		// All goroutines execute these recordings at the same time, with different ranges.
		step := func(mode gpu.Mode, called bool) *gpu.CommandBuffer {
			c := must(r.dev.NewCommandBuffer(gpu.CommandOptions{InOrder: true, Mode: mode}))(t)
			left, x, far := must(c.Binding())(t), must(c.Binding())(t), must(c.Binding())(t)
			tmp := must(c.Scratch(4))(t)
			r.Do(c, gpu.Fill(tmp.All(), one(3)), gpu.Copy(far.Range(0, 4), tmp.All()),
				gpu.Launch(r.add, gpu.Grid{}, x.Range(0, 4), uint32(1), uint32(0)),
				gpu.Launch(r.add, gpu.Grid{}, left.Range(0, 4), ^uint32(0), uint32(0)))
			if called {
				r.Do(c, gpu.HostCall(func() error { return nil }))
			}
			check(t, c.End())
			return c
		}
		var common []*gpu.CommandBuffer
		for _, called := range []bool{false, true} {
			body := step(gpu.AutoMode, called)
			common = append(common, r.record(func(c *gpu.CommandBuffer) {
				var b [4]gpu.Range
				for i := range b {
					b[i] = must(c.Binding())(t).Range(0, 4)
				}
				tmp := must(c.Scratch(4))(t)
				r.Do(c, gpu.Fill(tmp.All(), one(1)), control.While(must(gpu.SliceOf[uint32](b[0]))(t), gpu.Execute(body, b[0], b[1], b[2])),
					gpu.Copy(b[3], tmp.All()))
			}))
			check(t, body.Close())
		}
		for w := range uint64(3) {
			workers.Go(func() {
				random := rand.New(rand.NewPCG(w, 3))
				own, err := growing.Reserve(r.dev, 1<<30, growing.Options{})
				check(t, err)
				defer func() { check(t, own.Close()) }()
				check(t, own.Grow(page))
				for range rounds {
					mode := []gpu.Mode{gpu.AutoMode, gpu.StreamMode, gpu.GraphMode}[random.IntN(3)]
					if mode == gpu.GraphMode && !gpu.Inside(r.dev).Engine.Caps.Graphs {
						mode = gpu.AutoMode
					}
					body := step(mode, random.IntN(3) == 0)
					n := random.Uint32N(4)
					x, left := own.Buffer().Range(0, 4), own.Buffer().Range(page-4, 4)
					number := must(gpu.SliceOf[uint32](left))(t)
					at := shared.Buffer().Range(page*random.Uint64N(2), 4)
					steady := random.IntN(2) == 0
					if steady {
						at = own.Buffer().Range(64, 4)
					}
					loop := control.While(number, gpu.Execute(body, left, x, at))
					closes := random.IntN(2) == 0
					var outer *gpu.CommandBuffer
					if random.IntN(2) == 0 {
						outer = must(r.dev.NewCommandBuffer(gpu.CommandOptions{InOrder: true, Mode: mode}))(t)
						c := outer
						{
							tmp := must(c.Scratch(4))(t)
							if _, err := c.Add(gpu.Fill(tmp.All(), one(1))); err != nil {
								t.Error(err)
							}
							if _, err := c.Add(loop); err != nil {
								if n = 0; steady || !errors.Is(err, gpu.ErrRange) {
									t.Error(err)
								}
							}
							if _, err := c.Add(gpu.Copy(own.Buffer().Range(128, 4), tmp.All())); err != nil {
								t.Error(err)
							}
						}
						if err := c.End(); err != nil && !errors.Is(err, gpu.ErrRange) {
							t.Error(err)
						}
						loop = gpu.Execute(outer)
					} else if random.IntN(2) == 0 {
						loop = gpu.Execute(common[random.IntN(2)], left, x, at, own.Buffer().Range(128, 4))
					}
					got, kept := make([]byte, 4), make([]byte, 4)
					s := r.dev.Queue(random.IntN(2)).NewStream()
					err := s.Do(gpu.Fill(x, one(0)), gpu.Fill(own.Buffer().Range(128, 4), one(1)), gpu.Fill(left, one(n)), loop)
					if err == nil {
						err = s.Do(gpu.Download(got, x), gpu.Download(kept, own.Buffer().Range(128, 4)))
					}
					if closes {
						check(t, body.Close())
						if outer != nil {
							check(t, outer.Close())
						}
					}
					if err == nil {
						err = s.Wait(context.Background())
					} else {
						s.Wait(context.Background())
					}
					if err != nil { // work that has not failed may still use the memory
						check(t, own.Close())
						var err2 error
						own, err2 = growing.Reserve(r.dev, 1<<30, growing.Options{})
						check(t, errors.Join(err2, own.Grow(page)))
					}
					if err != nil && (steady || !errors.Is(err, gpu.ErrRange)) {
						t.Errorf("steady %v: %v", steady, err)
					}
					if err == nil && (string(got) != string(one(n)) || string(kept) != string(one(1))) {
						t.Errorf("%v and %v after %d steps", got, kept, n)
					}
					check(t, body.Close())
					if outer != nil {
						check(t, outer.Close())
					}
				}
			})
		}
		workers.Wait()
		close(end)
		changer.Wait()
		check(t, shared.Close())
	})
}
