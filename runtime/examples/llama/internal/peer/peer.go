// Package peer adds the partial sums of several devices of a process. Each device runs a kernel
// that writes to the memory of the others. A recording with such sums is one graph, and a sum of
// few numbers takes the time of one write to another device.
package peer

//go:generate go run github.com/puregpu/puregpu/tools/kernelgen -runtime -type Peers=Peers -type u32=uint32 sum.cu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// MaxRanks is the largest number of devices.
const MaxRanks = 8

// A grid has at most blocks blocks. In one round a block adds at most capacity groups of four
// numbers. sum.cu has the same constants.
const blocks, capacity = 128, 1024

// ScratchSize is the size in bytes of each rank's scratch memory: see [Sum.Scratch].
const ScratchSize = 4 << 20

// Peers is struct Peers in C.
type Peers struct {
	Words       [MaxRanks]uint64 // addresses of the ranks' exchanged words
	Own         uint64           // this rank's element of Words
	Lost        uint64           // address of a word in host memory: 0, 1 + the rank that was lost, or 1 + MaxRanks if that is unknown
	Patience    uint64           // nanoseconds
	Rank, Ranks int32
}

// words is the number of words for the exchange in each rank's memory.
func words(ranks int) int { return 2 * blocks * ranks * 2 * capacity * 2 }

// A Sum is one device's rank in a set of devices that add numbers.
type Sum struct {
	dev     *gpu.Device
	devices []*gpu.Device
	peers   Peers
	code    *SumCode
	words   gpu.Slice[uint64] // for sums, and behind them the scratch memory
	state   gpu.Slice[uint32] // element 0 is not 0 once a rank was lost; element 1+b is the tag of block b's next round
	lost    gpu.Slice[uint32] // the word at Peers.Lost
}

// New makes a rank on each device. A kernel gives up waiting for another device after patience; 0
// means 10 seconds. If a device cannot run the kernel or has no access to the memory of another,
// the error is [gpu.ErrUnsupported]. Close the ranks only when no device launches sums any more.
func New(ctx context.Context, devices []*gpu.Device, patience time.Duration) ([]*Sum, error) {
	if len(devices) < 2 || len(devices) > MaxRanks {
		return nil, fmt.Errorf("peer: %d devices: 2 to %d can add: %w", len(devices), MaxRanks, gpu.ErrArgument)
	}
	if patience <= 0 {
		patience = 10 * time.Second
	}
	if err := access(devices); err != nil {
		return nil, err
	}
	sums, errs := make([]*Sum, len(devices)), make([]error, len(devices))
	var all sync.WaitGroup
	for i, dev := range devices {
		sums[i] = &Sum{dev: dev, devices: slices.Clone(devices), peers: Peers{Rank: int32(i), Ranks: int32(len(devices)), Patience: uint64(patience)}}
		all.Go(func() { errs[i] = sums[i].open(ctx) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, s := range sums {
			err = errors.Join(err, s.Close())
		}
		return nil, fmt.Errorf("peer: %w", err)
	}
	for _, s := range sums {
		s.peers.Own = address(s.words)
		for r, other := range sums {
			s.peers.Words[r] = address(other.words)
		}
	}
	return sums, nil
}

// access gives the devices access to each other's memory. It fails if a device cannot run the
// kernel, or if two devices have no link.
func access(devices []*gpu.Device) error {
	if _, err := gpu.NewGroup(devices...); err != nil {
		return err
	}
	for _, from := range devices {
		if arch := from.Info().Arch; arch != "sim" && (!strings.HasPrefix(arch, "sm_") || from.Info().Major < 8) {
			return fmt.Errorf("peer: %s is %s: NVIDIA GPUs of compute capability 8.0 or later are needed: %w", from.Info().Name, arch, gpu.ErrUnsupported)
		}
		for _, to := range devices {
			if l, err := from.Link(to); err != nil {
				return err
			} else if l.Kind == driver.LinkNone {
				return fmt.Errorf("peer: device %d has no access to the memory of device %d: %w", from.Info().Index, to.Info().Index, gpu.ErrUnsupported)
			}
		}
	}
	return nil
}

func (s *Sum) open(ctx context.Context) (err error) {
	if s.code, _, err = CompileSum(s.dev, compile.Options{Options: options(s.Count())}); err != nil {
		return err
	}
	if s.words, err = gpu.AllocSlice[uint64](s.dev, gpu.DeviceMem, words(s.Count())+ScratchSize/8); err != nil {
		return err
	}
	if s.state, err = gpu.AllocSlice[uint32](s.dev, gpu.DeviceMem, 1+blocks); err != nil {
		return err
	}
	if s.lost, err = gpu.AllocSlice[uint32](s.dev, gpu.HostMem, 1); err != nil {
		return err
	}
	s.lost.Host()[0] = 0
	s.peers.Lost = address(s.lost)
	stream := s.dev.Queue(0).NewStream()
	stream.Do(s.words.Fill(0), s.state.Fill(1), s.state.Slice(0, 1).Fill(0))
	return stream.Wait(ctx)
}

func options(ranks int) []string { return []string{"--std=c++17", fmt.Sprintf("-DRANKS=%d", ranks)} }

func address[T any](s gpu.Slice[T]) uint64 { return uint64(s.Range().Buffer.Ptr()) + s.Range().Offset }

// Scratch returns memory for a kernel that exchanges other words than sums do. The memory has
// ScratchSize bytes. The addresses in Peers are those of the ranks' scratch memory. If the kernel
// gives up waiting for another rank, it writes to the word at Peers.Lost.
func (s *Sum) Scratch() (gpu.Slice[uint64], Peers) {
	n, p := words(s.Count()), s.peers
	p.Own += uint64(8 * n)
	for r := range p.Words[:p.Ranks] {
		p.Words[r] += uint64(8 * n)
	}
	return s.words.Slice(n, n+ScratchSize/8), p
}

// Rank returns the rank.
func (s *Sum) Rank() int { return int(s.peers.Rank) }

// Devices returns the devices of all ranks.
func (s *Sum) Devices() []*gpu.Device { return s.devices }

// Count returns how many ranks there are.
func (s *Sum) Count() int { return int(s.peers.Ranks) }

// Op returns a launch that adds the first n numbers of every rank's part to x: x += part of rank 0,
// then of rank 1, and so on. n is a multiple of 4, and x and part begin at multiples of 16 bytes.
// All ranks must launch the same sums in the same order, or they wait for each other in vain. On
// devices of compute capability 9.0 or later the launch is dependent: see gpu.LaunchAttrs.
func (s *Sum) Op(x, part gpu.Slice[float32], n int) gpu.Op {
	if err := fits(x, part, n); err != nil {
		return gpu.BadOp(err)
	}
	groups, length, threads := n/4, 128, 128 // few numbers are spread over many multiprocessors
	if groups > blocks*length {
		length, threads = capacity, 512
	}
	return s.code.PeerSum.Launch(s.grid((groups+length-1)/length, threads), s.peers, int32(groups), int32(length), part, x, s.state)
}

// A Norm is an RMS norm with a weight [width] of 16-bit numbers, which are float16 if Half is 1 and
// bfloat16 otherwise.
type Norm struct {
	Weight gpu.Range
	Eps    float32
	Half   int32
	To     gpu.Slice[uint16] // the norms of all rows
}

// OpNorm does what Op does, for the given number of rows, each of width numbers. It also computes
// the norm of each row of the new x.
func (s *Sum) OpNorm(x, part gpu.Slice[float32], rows, width int, n Norm) gpu.Op {
	if err := fits(x, part, rows*width); err != nil {
		return gpu.BadOp(err)
	}
	if width%4 != 0 || n.Weight.Size < uint64(2*width) || n.To.Len() < rows*width {
		return gpu.BadOp(fmt.Errorf("peer: norms of %d rows of %d numbers, with %d bytes of weights, to %d numbers: %w",
			rows, width, n.Weight.Size, n.To.Len(), gpu.ErrArgument))
	}
	return s.code.PeerSumNorm.Launch(s.grid(rows, 512), s.peers, int32(rows*width/4), int32(width/4), part, x, s.state, n.Weight, n.Eps, n.Half, n.To)
}

func fits(x, part gpu.Slice[float32], n int) error {
	if n <= 0 || n%4 != 0 || n > x.Len() || n > part.Len() {
		return fmt.Errorf("peer: a sum of %d numbers from slices of %d and %d: the number must be a multiple of 4, and fit into both: %w", n, x.Len(), part.Len(), gpu.ErrArgument)
	}
	return nil
}

// grid returns a grid whose blocks and threads are the same on all ranks, whatever their devices
// are.
func (s *Sum) grid(rows, threads int) gpu.Grid {
	g := gpu.Grid{Blocks: [3]uint32{uint32(min(rows, blocks))}, Threads: [3]uint32{uint32(threads)}}
	info := s.dev.Info()
	g.Attrs.Dependent = info.Arch != "sim" && info.Major >= 9
	return g
}

// Err returns an error once a kernel of this rank has given up waiting for another rank. Later sums
// of this rank wait only briefly, or not at all. Once one rank has an error, the results of all
// ranks may be wrong.
func (s *Sum) Err() error {
	r, from := atomic.LoadUint32(&s.lost.Host()[0]), "another rank"
	if r == 0 {
		return nil
	}
	if r <= MaxRanks {
		from = fmt.Sprintf("rank %d", r-1)
	}
	return fmt.Errorf("peer: rank %d waited %v for the numbers of %s: its GPU was lost, or did not get the same work",
		s.peers.Rank, time.Duration(s.peers.Patience), from)
}

// Close frees the rank's memory.
func (s *Sum) Close() (err error) {
	if s.code != nil {
		err = s.code.Close()
	}
	for _, r := range []gpu.Range{s.words.Range(), s.state.Range(), s.lost.Range()} {
		if r.Buffer != nil {
			err = errors.Join(err, r.Buffer.Close())
		}
	}
	return err
}
