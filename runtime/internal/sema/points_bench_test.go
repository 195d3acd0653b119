package sema_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// BenchmarkPoints measures a semaphore with many signals in flight, on two streams.
func BenchmarkPoints(b *testing.B) {
	many := []int{1, 1000, 10_000, 100_000}
	// inFlight submits n operations on a stalled device. Operation i signals value(i).
	inFlight := func(b *testing.B, n int, value func(i int) int) (*simdriver.Driver, *gpu.Device, *gpu.Semaphore) {
		d := newSim(b, simdriver.Config{})
		dev, s := openDevice(b, d, 0, gpu.Options{Queues: 2}), semaphores(b, 1)[0]
		buf := allocate(b, dev, 64)
		d.StallDevice(0)
		for i := range n {
			must(b, dev.Queue(i%2).Submit(gpu.Order{Signal: pts(s, uint64(value(i)))}, gpu.Fill(buf.Range(uint64(i%2), 1), []byte{1})))
		}
		return d, dev, s
	}
	for _, n := range many {
		ascending := func(i int) int { return i + 1 }
		shuffled := rand.New(rand.NewPCG(1, 2)).Perm(n)
		b.Run("register/"+strconv.Itoa(n), func(b *testing.B) {
			d, _, s := inFlight(b, n, ascending)
			r := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				s.OnReached(uint64(r.IntN(n)+1), func(error) {})()
			}
			d.ResumeDevice(0)
		})
		b.Run("query/"+strconv.Itoa(n), func(b *testing.B) {
			d, _, s := inFlight(b, n, ascending)
			for b.Loop() {
				s.Query()
			}
			d.ResumeDevice(0)
		})
		for name, value := range map[string]func(i int) int{
			"ascending":  ascending,
			"descending": func(i int) int { return n - i },
			"random":     func(i int) int { return shuffled[i] + 1 },
		} {
			b.Run("submit and reach, "+name+"/"+strconv.Itoa(n), func(b *testing.B) {
				for b.Loop() {
					d, dev, s := inFlight(b, n, value)
					d.ResumeDevice(0)
					must(b, s.Wait(b.Context(), uint64(n)))
					must(b, dev.Close())
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/point")
			})
		}
	}
}
