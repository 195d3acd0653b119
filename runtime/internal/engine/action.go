package engine

// An Action is an operation that needs more than driver calls on a stream. A submission without an
// action is a plain operation: a fill, a copy, a launch. One Action value serves all submissions of
// a kind: the state of a submission is in its record, not in the Action.
//
// Only one goroutine at a time works on a submission. The engine calls the methods for it in one of
// these orders:
//
//	Prepare, Issue, Issued, (the stream passes the work,) Release
//	Prepare, Undo, Prepare, …        the submission is parked, and tried again later
//	Prepare, Undo, Issued, Release   the stream has got some of the waits, but not the operation
//	Undo, Release                    the submission fails, before Prepare or after it
//	Release                          it was never tried
//
// Prepare and Blocks run with no timeline locked. HoldsUp, Issue, Issued, Retries and Explain run
// with the submission's timeline locked. Release runs under a retireMu or with nothing locked. None
// may call the public API, which takes the same locks.
type Action interface {
	// Prepare acquires what Issue needs. s.Deps has the marks of the submission's waits, and
	// Prepare may add more. Prepare runs on the thread that issues the submission: in the
	// submitting call, on the pending-queue thread, on the lane's thread, or, if Blocks returns
	// true, on a goroutine of its own.
	//
	// If Prepare returns an error, the submission is not issued, and Undo is called with the
	// Outcome. Without an error the Outcome is ignored.
	Prepare(s *Submission) (Outcome, error)

	// Blocks reports whether Prepare or Issue may block. It is called for submissions that were
	// parked, before they are issued, perhaps more than once.
	Blocks(s *Submission) bool

	// HoldsUp reports whether the operation may make the stream wait: for another stream, or for
	// this or another program to act.
	HoldsUp(s *Submission, tl *Timeline) bool

	// Issue makes the native calls. It reports whether the stream has got any of them.
	Issue(s *Submission, tl *Timeline) (started bool, err error)

	// Issued is called once the submission has its number, s.Seq. broken says that the stream has
	// got only a part of the submission. Issued reports whether the work must be polled even if
	// nothing waits for its signals.
	Issued(s *Submission, tl *Timeline, broken bool) (wanted bool)

	// Undo undoes Prepare, if Prepare was called. The stream has got none of the operation. The
	// argument how gives the reason. Undo may be called twice, the first time with the timeline
	// locked. If how is Deferred, Undo has the submission issued again later, so the caller must
	// not touch the submission after Undo.
	Undo(s *Submission, how Outcome)

	// Retries reports whether to call Issue once more after it has failed with err. Before the
	// second call the engine frees the memory of finished work (Device.Collect) and gathers Deps
	// anew. It does not call Prepare again, so Prepare must not have added marks.
	Retries(s *Submission, err error) bool

	// Explain returns err, the error of the second call of Issue, with details added, such as who
	// holds the memory.
	Explain(s *Submission, err error) error

	// Release releases everything that the operation holds. The stream has passed the operation, or
	// never got it.
	Release(s *Submission)
}

// A SimpleAction has empty methods. Embed it in actions that do not need all of them.
type SimpleAction struct{}

func (SimpleAction) Prepare(*Submission) (Outcome, error)     { return Issued, nil }
func (SimpleAction) Blocks(*Submission) bool                  { return false }
func (SimpleAction) HoldsUp(*Submission, *Timeline) bool      { return false }
func (SimpleAction) Issued(*Submission, *Timeline, bool) bool { return false }
func (SimpleAction) Undo(*Submission, Outcome)                {}
func (SimpleAction) Retries(*Submission, error) bool          { return false }
func (SimpleAction) Explain(_ *Submission, err error) error   { return err }
func (SimpleAction) Release(*Submission)                      {}
