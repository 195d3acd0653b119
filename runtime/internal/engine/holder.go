package engine

// A Holder is an object that work uses: memory, code, a recording. A submission holds the object
// from the call of Submit until the stream has passed the work, so that the object is not freed. If
// the submission fails before it is issued, the submission releases the object when it fails.
type Holder interface {
	// Use records that work may use the object. The work is about to be issued and will have the
	// mark m. If another device owns the object, Use calls Borrow of that device. If Use returns an
	// error, the work is not issued. The caller holds m.Timeline.mu.
	Use(m Mark) error

	// Unuse undoes Use if the work was not issued after all. It reports whether another operation
	// may already be waiting for m. Unuse may be called even if Use was not called.
	Unuse(m Mark) (awaited bool)

	// Release is called when n submissions no longer hold the object. The caller may hold a
	// Timeline.retireMu.
	Release(n int32)
}

// A holderRun releases the Holders of a batch of submissions. If consecutive submissions hold the
// same Holder, it calls Release once for all of them.
type holderRun struct {
	h Holder
	n int32
}

func (r *holderRun) add(h Holder) {
	if h != r.h {
		r.release()
		r.h, r.n = h, 0
	}
	r.n++
}

func (r *holderRun) release() {
	if r.h != nil {
		r.h.Release(r.n)
	}
}

// Borrow records that work may use memory or another object of d. The work is about to be issued
// and will have the mark m. Work on d itself needs no record. While d.Short is above 0, Borrow
// requests polling of the work. If d is closed and the work is on another device, Borrow returns
// false and the work must not use the object.
func (d *Device) Borrow(m Mark) bool {
	if d != m.Timeline.Device && !d.lent.add(m) {
		return false
	}
	if d.Short.Load() > 0 {
		m.Timeline.want(m.Seq)
	}
	return true
}
