package gpu

import (
	"fmt"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/comm"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/events"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/recording"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A record is a submission with further fields for the operations of this package. Records are
// recycled. Timeline.Get sets Submission.UsesRest except for plain operations (work.Kind.Plain). If
// the record of a plain operation gets a field that Release must clear, such as label or lent,
// UsesRest must be set too.
type record struct {
	engine.Submission
	q *Queue

	label    string  // the Order's label
	timing   *Timing // the Order's Timing
	edges    timingEdges
	lent     *lent         // has the points of Order.Free, or nil
	shared   *events.Event // the event to record or to wait for
	fn       func() error  // of an operation that the host runs, or of a notification
	memory   memory.Part
	group    comm.Part
	staging  memory.Staging
	to, from *memory.Buffer // see between
	launchPart
	nativePart
	recording recording.Part
}

// Memory returns the part of the record for package memory.
func (r *record) Memory() *memory.Part { return &r.memory }

// Recording returns the part of the record for package recording.
func (r *record) Recording() *recording.Part { return &r.recording }

// Group returns the part of the record for package comm.
func (r *record) Group() *comm.Part { return &r.group }

// Packages memory, recording and comm find their parts of a record through these interfaces.
var _ interface {
	memory.Record
	recording.Record
	comm.Record
} = (*record)(nil)

// newRecord makes a record for the queue.
func (q *Queue) newRecord() *record {
	r := &record{q: q}
	r.Init(q.tl, r)
	return r
}

// recordOf returns the record of a submission.
func recordOf(s *engine.Submission) *record { return s.Rest.(*record) }

// actions are the engine.Actions by kind of operation. A kind without an entry has no action.
var actions = [work.Control + 1]engine.Action{
	work.Alloc:   memory.Alloc{},
	work.Free:    memory.Free{},
	work.Execute: recording.Execute{},
	work.Collect: comm.Collect{},
	work.Native:  nativeAction{},
}

// get takes a free record for an operation of the kind, or makes one.
func (q *Queue) get(kind work.Kind) *record {
	r := recordOf(q.tl.Get(kind))
	r.Action = actions[kind]
	return r
}

// keepBuffer holds the buffer b for the submission until the stream has passed the work. If b
// cannot be held, keepBuffer recycles the record and returns an error. But if the device has
// failed, keepBuffer only returns nil: the submission will fail with the device's error.
func (r *record) keepBuffer(b *memory.Buffer) error {
	if err := r.hold(b); err != nil {
		return r.notKept(err)
	}
	return nil
}

// hold holds a buffer and adds it to the objects that the submission holds.
func (r *record) hold(b *memory.Buffer) error {
	err := b.Hold()
	if err == nil {
		r.keep(b)
	}
	return err
}

// notKept handles err, the reason why a buffer cannot be held. See keepBuffer.
func (r *record) notKept(err error) error {
	if r.q.dev.failed() != nil {
		return nil
	}
	op := r.Op.Kind.String()
	r.drop()
	return fmt.Errorf("gpu: %s: %w", op, err)
}

// drop recycles a record that was not submitted.
func (r *record) drop() { r.Timeline.Device.Recycle(&r.Submission) }

// keep adds a buffer to the objects that the submission holds. The caller must have called the
// buffer's Hold or HoldMore.
func (r *record) keep(b *memory.Buffer) {
	r.Holds = append(r.Holds, b.Holding())
}

// The method between stores the buffer dst that the operation writes to and the buffer src that it
// reads from, if one of them belongs to another device. dst or src is nil if there is no buffer, or
// if the memory is the runtime's.
func (r *record) between(dst, src *memory.Buffer) {
	if dst != nil && dst.Device() != r.q.dev.mem() || src != nil && src.Device() != r.q.dev.mem() {
		r.to, r.from, r.Across, r.UsesRest = dst, src, true, true
	}
}

// Start makes the native calls of an operation that has no action and needs more than the addresses
// dst and src. See engine.Rest.
func (r *record) Start(tl *engine.Timeline, dst, src driver.Ptr) (started bool, err error) {
	x := work.Extra{Launch: &r.launch}
	if r.Across {
		if x.DstOf, x.SrcOf, err = r.q.dev.mem().Owners(r.to, r.from); err != nil {
			return false, err
		}
	}
	if err := r.resolveArgs(); err != nil {
		return false, err
	}
	if r.shared != nil {
		x.Event = r.shared.Native()
	}
	r.staging.Issue(&x)
	return r.Op.Run(tl.Device.Native, tl.Stream, dst, src, &x)
}

// Deliver copies the data of a download into the program's slice, if err is nil and the download
// has been issued (Seq is not 0).
func (r *record) Deliver(err error) {
	r.staging.Deliver(err == nil && r.Seq != 0)
}

// Call calls the function of an operation that the host runs, such as a host call or a transfer. If
// the operation has a Timing, Call measures how long the function takes, and adds this time to the
// Timing.
func (r *record) Call() error {
	if t, edges := r.timing, r.edges; t != nil {
		begun := time.Now()
		defer func() { t.hostly(time.Since(begun), edges) }() // also if the function ends its goroutine
	}
	if x := observe.Of(&r.Submission); x != nil {
		return x.Calls(func() error { return guard(r.fn) })()
	}
	return guard(r.fn)
}

// Notice returns the function of a notification.
func (r *record) Notice() func() error {
	fn := r.fn
	if x := observe.Of(&r.Submission); x != nil {
		return x.Calls(func() error { return guard(fn) })
	}
	return fn
}

// Release releases the objects that the record's fields hold, and clears the fields. The field
// timing is cleared by timedRecord.Ends.
func (r *record) Release() {
	r.recording.Release()
	if r.shared != nil {
		r.shared.Release()
	}
	r.staging.Release()
	// If a group of collectives is refused, the submitting call returns an error, and the points of
	// Order.Free are not signalled. But if several submissions share r.lent, the refused group must
	// be counted as over. Otherwise the points would never be signalled, although other submissions
	// were accepted.
	if r.lent != nil && (r.lent.shared || !r.group.Refused()) {
		r.lent.over(1)
	}
	r.memory, r.to, r.from = memory.Part{}, nil, nil
	r.launchPart.reset()
	clear(r.uses)
	r.nativePart = nativePart{uses: r.uses[:0], ptrs: r.ptrs}
	r.group.Reset()
	r.label, r.lent, r.shared, r.fn = "", nil, nil, nil
}

// Leave fails the points of Order.Free with the error why. Leave is called instead of Release if
// the native objects are left to the driver.
func (r *record) Leave(why error) {
	if r.lent != nil {
		r.lent.tell(why)
	}
}

// Failure makes the SubmitError of a submission that fails with err.
func (*deviceOwner) Failure(s *engine.Submission, err error) error {
	r := recordOf(s)
	return r.q.submitError(r.Op.Kind, r.kernelName(), r.label, err)
}

// submitError makes the SubmitError of an operation that failed with err. If err is the SubmitError
// of other work, submitError returns err.
func (q *Queue) submitError(op work.Kind, kernel, label string, err error) error {
	if isSubmitError(err) {
		return err
	}
	return &SubmitError{op.String(), kernel, label, q.mention(), q.dev.native.Info.Name, err, q.dev.receipt(err)}
}

func isSubmitError(err error) bool {
	_, ok := err.(*SubmitError)
	return ok
}

// OfWork reports whether err is a SubmitError: the error of failed work.
func (*deviceOwner) OfWork(err error) bool { return isSubmitError(err) }

// StreamFailed records that a Stream has failed with err, the error of the submission s. See
// failedStreams.
func (*deviceOwner) StreamFailed(s *engine.Submission, err error) {
	recordOf(s).noteFailure(err)
}
