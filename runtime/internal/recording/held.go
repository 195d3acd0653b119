package recording

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
)

// held has the objects that a recording keeps until it is destroyed. After Recording.End, only the
// field uses changes.
type held struct {
	buffers map[*memory.Buffer]struct{}
	uses    engine.Uses      // marks of executions of this recording, and of recordings in which it is nested
	foreign []*memory.Buffer // buffers of other devices, held by this recording or by nested ones
	code    map[Code]struct{}
	stages  []*memory.Block // pinned memory of uploads
	nested  []*Recording
}

// A Code is loaded code with kernels.
type Code interface {
	Hold() error     // keeps the code loaded until Release is called
	Release(n int32) // releases n holds
	IsClosed() bool  // reports whether the program has closed the code
}

// addBuffer holds a buffer for a recording on device home.
func (h *held) addBuffer(b *memory.Buffer, home *memory.Device) error {
	if b.IsClosed() {
		return fmt.Errorf("buffer: %w", errs.ErrClosed)
	}
	if _, ok := h.buffers[b]; ok {
		return nil
	}
	if err := b.Hold(); err != nil {
		return err
	}
	if h.buffers == nil {
		h.buffers = map[*memory.Buffer]struct{}{}
	}
	h.buffers[b] = struct{}{}
	b.JoinUses(&h.uses)
	if b.Device() != home {
		h.foreign = append(h.foreign, b)
	}
	return nil
}

// addCode keeps code loaded.
func (h *held) addCode(x Code) error {
	if x.IsClosed() {
		return fmt.Errorf("executable: %w", errs.ErrClosed)
	}
	if _, ok := h.code[x]; ok {
		return nil
	}
	if err := x.Hold(); err != nil {
		return err
	}
	if h.code == nil {
		h.code = map[Code]struct{}{}
	}
	h.code[x] = struct{}{}
	return nil
}

// addNested keeps a nested recording. The caller has taken a reference to it.
func (h *held) addNested(n *Recording) {
	h.nested, h.foreign = append(h.nested, n), append(h.foreign, n.held.foreign...)
}

// use adds a mark to the uses of the recording and of the recordings nested in it. It also tells
// the devices that own the foreign buffers about the work, and returns an error if one of these
// devices has been closed.
func (h *held) use(m engine.Mark) error {
	h.addUse(m)
	for _, b := range h.foreign {
		if !b.Device().Engine.Borrow(m) {
			return fmt.Errorf("a buffer of device %s: %w", b.Device().Engine.Info.Name, errs.ErrClosed)
		}
	}
	return nil
}

// addUse adds a mark to the uses of the recording and of the recordings nested in it.
func (h *held) addUse(m engine.Mark) {
	h.uses.Add(m)
	for _, n := range h.nested {
		n.held.addUse(m)
	}
}

// lowerUse undoes addUse.
func (h *held) lowerUse(m engine.Mark) {
	h.uses.Lower(m)
	for _, n := range h.nested {
		n.held.lowerUse(m)
	}
}

// release releases everything.
func (h *held) release() {
	for _, b := range h.stages {
		b.Free()
	}
	for b := range h.buffers {
		b.LeaveUses(&h.uses)
		b.Release()
	}
	for x := range h.code {
		x.Release(1)
	}
	for _, n := range h.nested {
		n.release()
	}
	h.stages, h.nested = nil, nil
	clear(h.buffers)
	clear(h.code)
}
