package engine

// An Action is an operation that is more than calls of the driver on a stream. A submission without
// one is a plain operation: a fill, a copy, a launch. One value serves all submissions of a kind. What
// belongs to one submission is in its record.
//
// One goroutine at a time has the submission. It calls the methods in one of these orders:
//
//	prepare, issue, issued, (the stream passes the work,) release
//	prepare, undo, prepare, …        the submission is parked, and tried again later
//	prepare, undo, issued, release   the stream has got some of the waits, and not the operation
//	undo, release                    the submission fails before prepare, or after it
//	release                          it was never tried
//
// prepare and blocks run with no timeline locked. holdsUp, issue, issued, retries and explain run with
// the submission's timeline locked, and release under retireMu or with nothing locked. None may call
// public methods of the package.
type Action interface {
	// Prepare gets what issuing needs. The marks of the submission's waits have been found (deps), and
	// prepare may add others. It runs in the call, on the pending-queue thread, or on a goroutine of
	// its own if blocks says so. With an error the submission is not issued, undo follows, and the
	// outcome says how. Without an error the outcome means nothing.
	Prepare(s *Submission) (Outcome, error)

	// Blocks reports whether prepare or issue may block. It is asked of a submission that was parked,
	// before the pending-queue thread issues it, perhaps more than once.
	Blocks(s *Submission) bool

	// HoldsUp reports whether the stream may come to wait for others at the operation: for other
	// streams, or for what only programs bring.
	HoldsUp(s *Submission, tl *Timeline) bool

	// Issue makes the native calls. It reports whether the stream has got any of them.
	Issue(s *Submission, tl *Timeline) (started bool, err error)

	// Issued is called when the submission has its number, seq. Of a broken one the stream has got a
	// part. It reports whether somebody waits for the work whatever becomes of its signals.
	Issued(s *Submission, tl *Timeline, broken bool) (wanted bool)

	// Undo undoes prepare, if it was called: the stream has got nothing of the operation. how says
	// why. It may be called twice, the first time with the timeline locked. If how is deferred, undo
	// enlists the submission again, and nobody touches it afterwards.
	Undo(s *Submission, how Outcome)

	// Retries reports whether issue, which failed with err, is to be tried once more when the memory of
	// finished work has been collected. prepare is not called again, so it must not have added marks.
	Retries(s *Submission, err error) bool

	// Explain adds to the error of the second try what helps.
	Explain(s *Submission, err error) error

	// Release lets go of what the operation holds: the stream has passed it, or never got it.
	Release(s *Submission)
}

// A SimpleAction is the methods of an action that has nothing to do in them.
type SimpleAction struct{}

func (SimpleAction) Prepare(*Submission) (Outcome, error)     { return Issued, nil }
func (SimpleAction) Blocks(*Submission) bool                  { return false }
func (SimpleAction) HoldsUp(*Submission, *Timeline) bool      { return false }
func (SimpleAction) Issued(*Submission, *Timeline, bool) bool { return false }
func (SimpleAction) Undo(*Submission, Outcome)                {}
func (SimpleAction) Retries(*Submission, error) bool          { return false }
func (SimpleAction) Explain(_ *Submission, err error) error   { return err }
func (SimpleAction) Release(*Submission)                      {}
