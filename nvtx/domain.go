package nvtx

import "sync"

// A Domain separates the events of a library from other events: tools show and filter each domain
// separately. The tool learns of a domain at the domain's first event, so a package can make a
// Domain in a global variable. A nil Domain is the default domain.
type Domain struct {
	name string

	mu     sync.RWMutex // protects the following fields; read-locked by calls that use the handle
	handle uintptr      // the tool's handle
	made   bool
	closed bool
}

// NewDomain makes a domain.
func NewDomain(name string) *Domain { return &Domain{name: name} }

// Close removes the domain from the tool. Later events of the domain are dropped. Ranges of the
// domain that have not ended stay open. Closing the default domain does nothing.
func (d *Domain) Close() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made && !d.closed {
		c := calls.Get().(*call)
		defer c.put()
		c.do(moduleCore2, core2Destroy, d.handle)
	}
	d.closed = true
}

// enter returns the tool's handle of the domain, which is valid until Domain.leave is called. enter
// returns false if the domain is closed. The default domain has handle 0.
func (d *Domain) enter() (handle uintptr, ok bool) {
	if d == nil {
		return 0, true
	}
	d.mu.RLock()
	if !d.made && !d.closed {
		d.mu.RUnlock()
		d.make()
		d.mu.RLock()
	}
	if d.closed {
		d.mu.RUnlock()
		return 0, false
	}
	return d.handle, true
}

// leave ends the use that enter began.
func (d *Domain) leave() {
	if d != nil {
		d.mu.RUnlock()
	}
}

// make creates the domain in the tool, unless that has been done or the domain is closed.
func (d *Domain) make() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made || d.closed {
		return
	}
	c := calls.Get().(*call)
	defer c.put()
	d.handle, d.made = c.do(moduleCore2, core2Create, c.cString(d.name)), true
}

// Mark marks the present moment.
func (d *Domain) Mark(message string) {
	if Enabled() {
		mark(&Event{Domain: d, Message: message})
	}
}

// Start is [Start] in the domain.
func (d *Domain) Start(message string) Range {
	if !Enabled() {
		return Range{}
	}
	return start(&Event{Domain: d, Message: message})
}

// Push is [Push] in the domain.
func (d *Domain) Push(message string) ThreadRange {
	if !Enabled() {
		return ThreadRange{}
	}
	return push(&Event{Domain: d, Message: message})
}

// NameCategory names a category of the domain's events. Categories are numbers that the program
// chooses, from 1.
func (d *Domain) NameCategory(category uint32, name string) {
	if !Enabled() {
		return
	}
	c := calls.Get().(*call)
	defer c.put()
	if domain, ok := d.enter(); ok {
		defer d.leave()
		if d == nil {
			c.do(moduleCore, coreNameCategory, uintptr(category), c.cString(name))
		} else {
			c.do(moduleCore2, core2NameCategory, domain, uintptr(category), c.cString(name))
		}
	}
}

// A String is a text registered with the tool. Events with a String cost less than events with a
// text. The tool keeps the text until the program exits or the domain is closed.
type String struct {
	domain *Domain
	text   string

	once   sync.Once
	handle uintptr // the tool's handle, or 0 if the tool registers no strings
}

// Register makes a String for events of the domain. In events of other domains the String is an
// ordinary text. The tool learns of the String at the first event that uses it.
func (d *Domain) Register(text string) *String { return &String{domain: d, text: text} }

// register returns the tool's handle of the string, or 0.
func (s *String) register(c *call, domain uintptr) uintptr {
	s.once.Do(func() { s.handle = c.do(moduleCore2, core2RegisterString, domain, c.cString(s.text)) })
	return s.handle
}
