package memory

import (
	"sync"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Statistics count a device's buffers.
type Statistics struct {
	Buffers   int    // live buffers
	PeakBytes uint64 // highest sum of Device.Live and Host.Live
	Device    ByteStats
	Host      ByteStats
}

// ByteStats count the bytes that the runtime has allocated for buffers. Statistics.Host counts host
// memory, and Statistics.Device all other memory. Memory from elsewhere does not count, such as
// imported memory and variables of loaded code. Nor does memory that a pool over a buffer hands out.
type ByteStats struct {
	Live      uint64
	Peak      uint64 // highest value of Live
	Allocated uint64 // total since the device was opened, including memory that has been freed
}

// Statistics returns a snapshot.
func (d *Device) Statistics() Statistics { return d.buffers.statistics() }

// books list a device's buffers.
type books struct {
	mu     sync.Mutex // protects the following fields; no other lock is taken while it is held
	list   *Buffer
	n      int
	device ByteStats
	host   ByteStats
	peak   uint64 // highest sum of device.Live and host.Live
	pages  uint64 // bytes of the pages of growing memory, which are included in the field device

	unpinning *Buffer // the buffer whose memory the reclaimer is unpinning, or nil

	slab *bufferSlab
	used int // number of buffers in slab that fresh has returned
}

// A bufferSlab is an array of buffers. Allocating it costs less than allocating them one by one. It
// has as many buffers as fit into 16 KiB.
type bufferSlab [97]Buffer

// fresh returns a zero buffer of a bufferSlab. A slab stays in memory as long as any of its
// buffers, so fresh is for buffers that do not live long. The caller holds s.mu.
func (s *books) fresh() *Buffer {
	if s.slab == nil || s.used == len(s.slab) {
		s.slab, s.used = new(bufferSlab), 0
	}
	s.used++
	return &s.slab[s.used-1]
}

func isHost(kind driver.MemKind) bool {
	return kind == driver.HostMem || kind == driver.WriteCombinedMem
}

// bytes returns the counter for a buffer's memory, and the size to count. The size is 0 if the
// runtime has not allocated memory for the buffer. It is also 0 for growing memory, whose pages
// countPages counts.
func (s *books) bytes(b *Buffer) (at *ByteStats, n uint64) {
	if b.from == allocated || b.from == pooled && b.pool.over == nil {
		n = b.mem.Size
	}
	if isHost(b.mem.Kind) {
		return &s.host, n
	}
	return &s.device, n
}

func (s *books) add(b *Buffer) {
	s.mu.Lock()
	s.link(b)
	s.mu.Unlock()
}

// link puts a buffer on the list, or the buffer's stand-in if the device reports dropped buffers
// (see watched). The caller holds s.mu.
func (s *books) link(b *Buffer) {
	if w := b.watchedBy(); w != nil {
		b = w.standFor(b)
	}
	b.after = s.list
	if s.list != nil {
		s.list.before = b
	}
	s.list = b
	s.n++
	s.count(s.bytes(b))
}

// count adds n new bytes to the counter *at and updates the peaks. The caller holds mu.
func (s *books) count(at *ByteStats, n uint64) {
	at.Live += n
	at.Allocated += n
	at.Peak = max(at.Peak, at.Live)
	s.peak = max(s.peak, s.device.Live+s.host.Live)
}

// remove removes a buffer from the list. It returns false if the buffer is not on the list: it was
// never added, or has been taken off before.
func (s *books) remove(b *Buffer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unlist(b)
}

// removeToFree is like remove, for the reclaimer. If it returns true, the reclaimer frees the
// memory and then calls books.freed.
func (s *books) removeToFree(b *Buffer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	listed := s.unlist(b)
	if listed && b.from == registered {
		s.unpinning = b
	}
	return listed
}

func (s *books) freed(b *Buffer) {
	if b.from == registered {
		s.mu.Lock()
		s.unpinning = nil
		s.mu.Unlock()
	}
}

// unlist is like remove, for a caller that holds mu.
func (s *books) unlist(b *Buffer) bool {
	if w := b.watchedBy(); w != nil && w.standIn.Load() != nil {
		b = w.standIn.Load()
	}
	listed := s.has(b)
	if listed {
		s.unlink(b)
	}
	return listed
}

// has reports whether the buffer is on the list. The caller holds mu.
func (s *books) has(b *Buffer) bool { return b.before != nil || s.list == b }

// unlink takes a buffer off the list. The caller holds mu.
func (s *books) unlink(b *Buffer) {
	if b.before != nil {
		b.before.after = b.after
	} else {
		s.list = b.after
	}
	if b.after != nil {
		b.after.before = b.before
	}
	b.before, b.after = nil, nil
	s.n--
	at, n := s.bytes(b)
	at.Live -= n
}

// countPages counts new pages of growing memory.
func (s *books) countPages(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages += n
	s.count(&s.device, n)
}

// uncountPages undoes countPages when pages are freed.
func (s *books) uncountPages(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages -= n
	s.device.Live -= n
}

func (s *books) statistics() Statistics {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Statistics{Buffers: s.n, PeakBytes: s.peak, Device: s.device, Host: s.host}
}

// haveNative reports whether any buffer has memory of a driver's pool.
func (s *books) haveNative() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := s.list; b != nil; b = b.after {
		if b.from == pooled && b.pool.blocks == nil {
			return true
		}
	}
	return false
}

// close frees the remaining buffers. If the parameter pools is true, close frees only buffers from
// pools. It passes h to Buffer.free. It runs on the pending-queue thread.
func (s *books) close(pools bool, h driver.Stream) (errs []error) {
	var left *Buffer
	s.mu.Lock()
	for b, after := s.list, (*Buffer)(nil); b != nil; b = after {
		after = b.after
		if pools && b.from != pooled {
			continue
		}
		s.unlink(b)
		b.before, b.after, left = nil, left, b
	}
	s.mu.Unlock()
	for left != nil {
		b := left
		left, b.after = b.after, nil
		if w := b.watchedBy(); w != nil {
			b = w.realOr(b)
		}
		b.closed.Store(true)
		if err := b.free(h); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
