package engine

// An Action implements an operation that needs more than native calls on a stream, such as an
// allocation. Fills, copies and launches have no Action. One Action value serves all submissions of
// one kind, so the value has no state. The state is in the Submission and its Rest.
//
// One goroutine at a time calls the methods for a submission. They are called in one of these
// orders:
//
//	Prepare, Issue, Issued, (the stream passes the work,) Release
//	Prepare, Issue, Undo, Release    the driver refuses the operation
//	Prepare, Undo, Prepare, …        the submission is parked and issued again later
//	Prepare, Undo, Issued, Release   the stream has received some of the waits, but not the operation
//	Prepare, Undo, Release           the submission fails before Issue
//	Undo, Release                    the submission fails before Prepare
//	Release                          the submission fails before the engine tries to issue it
//
// Issue may be called a second time (see Retries). Prepare and Blocks run with no timeline locked.
// HoldsUp, Issue, Issued, Retries and Explain run with the submission's timeline locked. Release
// may run with a Timeline.retireMu locked. No method may call the public API, which takes the same
// locks.
type Action interface {
	// Prepare acquires everything that Issue needs, such as memory. s.Deps has the marks of the
	// submission's waits, and Prepare may add marks. It runs on the goroutine that issues the
	// submission: the caller of Submit, the pending-queue thread, the lane's thread, or the
	// goroutine that released the last timepoint. If a parked submission becomes ready and Blocks
	// returns true, Prepare runs on a new goroutine.
	//
	// If Prepare returns an error, the submission is not issued, and the engine calls Undo with the
	// Outcome that Prepare returned. Without an error the Outcome is ignored.
	Prepare(s *Submission) (Outcome, error)

	// Blocks reports whether Prepare or Issue may block. The engine calls Blocks, perhaps more than
	// once, before it issues a submission that was parked.
	Blocks(s *Submission) bool

	// HoldsUp reports whether the operation itself may make the stream wait: for another stream,
	// for this program or for another program.
	HoldsUp(s *Submission, tl *Timeline) bool

	// Issue makes the native calls. started reports whether the stream has received any of the
	// calls, even if err is not nil.
	Issue(s *Submission, tl *Timeline) (started bool, err error)

	// Issued is called when the stream has received the submission and s.Seq is its number. broken
	// says that a native call failed, so the stream may have received only a part of the
	// submission. Issued reports whether the engine must poll for the work even if no timepoint
	// waits for its signals.
	Issued(s *Submission, tl *Timeline, broken bool) (wanted bool)

	// Undo undoes Prepare, if Prepare was called. The stream has received no native call of the
	// operation: the parameter how says why. Undo may be called twice, the first time with the
	// timeline locked. If how is Deferred, Undo arranges that the submission is issued later. In
	// that case the caller must not touch the submission after Undo.
	Undo(s *Submission, how Outcome)

	// Retries reports whether the engine must try to issue the submission once more after the first
	// attempt has failed with err. Before the second attempt, the engine frees the memory of
	// finished work (Device.Collect) and computes s.Deps anew. The engine does not call Prepare
	// again. So an action that retries must not add marks in Prepare.
	Retries(s *Submission, err error) bool

	// Explain adds details to err, the error of the second attempt. For example, Explain says how
	// many bytes the buffers and the pools hold.
	Explain(s *Submission, err error) error

	// Release releases everything that the action holds for s. The stream has passed the operation,
	// or has never received it.
	Release(s *Submission)
}

// A SimpleAction has all methods of Action except Issue. The methods do nothing. Actions embed
// SimpleAction and override the methods that they need.
type SimpleAction struct{}

func (SimpleAction) Prepare(*Submission) (Outcome, error)     { return Issued, nil }
func (SimpleAction) Blocks(*Submission) bool                  { return false }
func (SimpleAction) HoldsUp(*Submission, *Timeline) bool      { return false }
func (SimpleAction) Issued(*Submission, *Timeline, bool) bool { return false }
func (SimpleAction) Undo(*Submission, Outcome)                {}
func (SimpleAction) Retries(*Submission, error) bool          { return false }
func (SimpleAction) Explain(_ *Submission, err error) error   { return err }
func (SimpleAction) Release(*Submission)                      {}
