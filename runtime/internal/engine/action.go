package engine

// An Action is an operation that needs more than driver calls on a stream. A submission without an
// action is a plain operation: a fill, a copy, a launch. One value serves all submissions of a
// kind; the state of one submission is in its record.
//
// One goroutine at a time has the submission. It calls the methods in one of these orders:
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
	// Prepare gets everything that issuing needs. Deps has the marks of the submission's waits, and
	// Prepare may add others. It runs on the thread that issues: in the submitting call, on the
	// pending-queue thread, on the lane's, or on a goroutine of its own if Blocks says so. If
	// Prepare returns an error the submission is not issued, and Undo is called with the outcome.
	// Without an error the outcome means nothing.
	Prepare(s *Submission) (Outcome, error)

	// Blocks reports whether Prepare or Issue may block. It is called for submissions that were
	// parked, before they are issued, perhaps more than once.
	Blocks(s *Submission) bool

	// HoldsUp reports whether the operation may make the stream wait: for another stream, or for
	// something that only a program can bring.
	HoldsUp(s *Submission, tl *Timeline) bool

	// Issue makes the native calls. It reports whether the stream has got any of them.
	Issue(s *Submission, tl *Timeline) (started bool, err error)

	// Issued is called when the submission has its number, Seq. If it is broken the stream has got
	// only a part of it. Issued reports whether the device must be asked about the work even if
	// nothing waits for its signals.
	Issued(s *Submission, tl *Timeline, broken bool) (wanted bool)

	// Undo undoes Prepare, if that was called. The stream has got nothing of the operation, for the
	// reason how. Undo may be called twice, the first time with the timeline locked. If how is
	// Deferred, Undo enlists the submission again, and its caller does not touch the submission
	// afterwards.
	Undo(s *Submission, how Outcome)

	// Retries reports whether Issue, which failed with err, is tried once more after the memory of
	// finished work has been collected. Prepare is not called again, so it must not have added
	// marks.
	Retries(s *Submission, err error) bool

	// Explain adds to the error of the second try, for example who holds the memory.
	Explain(s *Submission, err error) error

	// Release lets go of everything that the operation holds. The stream has passed the operation,
	// or never got it.
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
