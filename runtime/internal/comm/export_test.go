package comm

import "github.com/puregpu/puregpu/runtime/internal/wake"

type Phase = phase

const (
	IsMaking    = isMaking
	IsOpen      = isOpen
	IsSuspended = isSuspended
	IsShrinking = isShrinking
	IsAborting  = isAborting
	IsEnded     = isEnded
	Phases      = phases
)

// Leads lists the phases that can follow each phase.
var Leads = leads

func (c *Communicator) Phase() Phase { return c.phase() }

// Post queues a function to run on the communicator's thread.
func (c *Communicator) Post(fn func()) bool { return c.post(fn) }

func (c *Communicator) Thread() *wake.Thread { return c.thread }

func (c *Communicator) Ask(seq uint64) bool { return c.ask(seq) }

func (c *Communicator) Fail(err error) { c.fail(err) }

func (c *Communicator) SetFailure(p Phase, err error) error { return c.setFailure(p, err) }
