package gpu

import "github.com/puregpu/puregpu/runtime/internal/work"

// An action is an operation that is more than calls of the driver on a stream. A submission without
// one is a plain operation: a fill, a copy, a launch. One value serves all submissions of a kind. What
// belongs to one submission is in its record.
//
// A submission goes through the methods in this order. At one time one goroutine has the submission.
//
//	prepare → issue → issued → (the stream passes the work) → release
//	prepare → undo → prepare …   it is parked, and tried again later
//	prepare → undo → release     it fails
//
// prepare, undo and release run with no timeline locked; issue and issued run with the submission's
// timeline locked. None may call the runtime's public methods on the same queue.
type action interface {
	// prepare gets what issuing needs. The waits of the submission have been found (deps), and prepare
	// may add marks to them. It runs in the call, on the pending-queue thread, or on a goroutine of its
	// own if blocks says so. With an error the submission is not issued, and undo follows.
	prepare(s *submission) (outcome, error)

	// blocks reports whether prepare or issue may block a thread that must not wait. The submission was
	// parked and is ready.
	blocks(s *submission) bool

	// holdsUp reports whether the stream may come to wait for others at the operation: for other
	// streams, or for what only programs bring.
	holdsUp(s *submission, tl *timeline) bool

	// issue makes the native calls. It reports whether the stream has got any of them.
	issue(s *submission, tl *timeline) (started bool, err error)

	// issued is called when the submission has its number, seq. Of a broken one the stream has got a
	// part. It reports whether somebody waits for the work whatever becomes of its signals.
	issued(s *submission, tl *timeline, broken bool) (wanted bool)

	// undo undoes prepare: the stream has got nothing of the operation. how says why. It may be called
	// twice, the first time with the timeline locked.
	undo(s *submission, how outcome)

	// retries reports whether issue, which failed with err, is to be tried once more when the memory of
	// finished work has been collected.
	retries(s *submission, err error) bool

	// explain adds to the error of the second try what helps.
	explain(s *submission, err error) error

	// release lets go of what the operation holds: the stream has passed it, or never got it.
	release(s *submission)
}

// actions are the actions by kind of operation.
var actions = [work.Transfer + 1]action{
	work.Alloca:   allocaAction{},
	work.Dealloca: deallocaAction{},
	work.Execute:  executeAction{},
	work.Collect:  collectAction{},
	work.Native:   nativeAction{},
}

// A simpleAction is the methods of an action that has nothing to do in them.
type simpleAction struct{}

func (simpleAction) prepare(*submission) (outcome, error)     { return issuedWork, nil }
func (simpleAction) blocks(*submission) bool                  { return false }
func (simpleAction) holdsUp(*submission, *timeline) bool      { return false }
func (simpleAction) issued(*submission, *timeline, bool) bool { return false }
func (simpleAction) undo(*submission, outcome)                {}
func (simpleAction) retries(*submission, error) bool          { return false }
func (simpleAction) explain(_ *submission, err error) error   { return err }
func (simpleAction) release(*submission)                      {}
