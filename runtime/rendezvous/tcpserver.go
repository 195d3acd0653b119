package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// A tcpServer is rank 0's end of an exchange.
type tcpServer struct {
	x   *tcpExchange
	all chan struct{} // closed when all ranks are connected
	wg  sync.WaitGroup
	ctx context.Context // for the connections

	mu       sync.Mutex // protects the following fields
	greeting []net.Conn // connections without a proof so far, oldest first
	waiting  map[net.Conn]waiter
	over     bool  // the exchange is over: no connection is accepted
	odd      error // the latest error of a listener or a peer, for messages
}

// A waiter is a rank that waits for the id.
type waiter struct {
	rank int // -1 if the process does not know its rank
	transcript
}

// strangers is the number of connections that may be greeted at the same time, in addition to the
// ranks'.
const strangers = 128

// give waits for all other ranks and sends them the id.
func (x *tcpExchange) give(ctx context.Context, id []byte) error {
	if x.count == 1 {
		return nil
	}
	listeners, err := x.open(ctx)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	s := &tcpServer{x: x, all: make(chan struct{}), ctx: inner, waiting: map[net.Conn]waiter{}, odd: x.unreachable(listeners)}
	var closed []func()
	for _, l := range listeners {
		closed = append(closed, closeWith(ctx, l))
		s.wg.Go(func() { s.accept(l) })
	}
	defer func() {
		for _, c := range closed {
			c()
		}
		cancel()
		s.wg.Wait()
	}()
	select {
	case <-s.all:
		return s.sendAll(id)
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.over = true
		return fmt.Errorf("%s: %w", come(s.ranks(), x.count-1), errOf(context.Cause(ctx), s.odd))
	}
}

func (s *tcpServer) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			s.note(err)
			time.Sleep(tcpPace().next) // too many open files; some may be closed soon
			continue
		}
		s.begin(c)
		s.wg.Go(func() {
			defer closeWith(s.ctx, c)()
			if err := s.serve(c); err != nil && s.ctx.Err() == nil {
				s.note(fmt.Errorf("from %s: %w", c.RemoteAddr(), err))
			}
		})
	}
}

func (s *tcpServer) note(err error) {
	s.mu.Lock()
	s.odd = err
	s.mu.Unlock()
}

// begin adds a connection to be greeted. If there are too many, begin closes the oldest one. The
// oldest connection is hardly a rank's, because greeting a rank takes little time. A rank would
// connect again.
func (s *tcpServer) begin(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.greeting = append(s.greeting, c)
	if len(s.greeting) > s.x.count+strangers {
		s.greeting[0].Close()
		s.greeting = slices.Delete(s.greeting, 0, 1)
	}
}

// end removes a connection that is no longer being greeted.
func (s *tcpServer) end(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.greeting, c); i >= 0 {
		s.greeting = slices.Delete(s.greeting, i, i+1)
	}
}

// serve greets a connected peer, and watches the connection.
func (s *tcpServer) serve(c net.Conn) error {
	w, err := s.greet(c)
	s.end(c)
	if err != nil {
		return err
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return err
	}
	if added, err := s.add(c, w); !added {
		return err
	}
	var nothing [1]byte
	n, err := c.Read(nothing[:]) // returns when the rank leaves, or this side closes the connection
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.ctx.Err() != nil {
		return nil
	}
	delete(s.waiting, c)
	if n > 0 {
		return fmt.Errorf("rank %d sends more than its proof", w.rank)
	}
	return fmt.Errorf("rank %d came and left: %w", w.rank, err)
}

// greet answers a peer and checks the proof that the peer knows the secret. It returns an error if
// the peer must not get the id.
func (s *tcpServer) greet(c net.Conn) (w waiter, err error) {
	if err := c.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return w, err
	}
	var h hello
	b, err := receive(c, &h)
	switch {
	case err != nil:
		return w, fmt.Errorf("no greeting: %w", err)
	case h.Magic != magic:
		return w, errors.New("a peer that is not a rank has connected")
	}
	w = waiter{int(h.Rank), transcript{s.x.key, b}}
	r := reply{magic, wait, int32(s.x.count), newNonce()}
	var odd error
	switch {
	case h.Token != s.x.token:
		r.Answer, odd = otherToken, errors.New("a rank of another run, or at an exchange with another name, has connected")
	case int(h.Count) != s.x.count:
		r.Answer, odd = otherCount, fmt.Errorf("%w: rank %d expects %d, and rank 0 %d", errCount, h.Rank, h.Count, s.x.count)
	case w.rank < -1 || w.rank == 0 || w.rank >= s.x.count:
		return w, fmt.Errorf("with %d ranks there is no other rank %d", s.x.count, h.Rank)
	default:
		if odd = s.taken(w.rank); odd != nil {
			r.Answer = rankTaken
		}
	}
	head := encode(r)
	w.add(head)
	m := w.mac(ofReply)
	if _, err := c.Write(append(head, m[:]...)); err != nil || odd != nil {
		return w, errors.Join(odd, err)
	}
	var proof mac
	if _, err := receive(c, &proof); err != nil {
		return w, fmt.Errorf("a rank has left without proving that it has the secret; is it the same on all ranks? %w", err)
	}
	if err := w.check(ofProof, proof); err != nil {
		return w, fmt.Errorf("a rank has %w", err)
	}
	return w, nil
}

// taken returns an error if the rank is already waiting.
func (s *tcpServer) taken(rank int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takenLocked(rank)
}

func (s *tcpServer) takenLocked(rank int) error {
	for c, w := range s.waiting {
		if w.rank == rank && rank >= 0 {
			return fmt.Errorf("rank %d is there already, from %v: do two processes have the same rank?", rank, c.RemoteAddr())
		}
	}
	return nil
}

// add adds a waiting rank, unless the exchange is over or the rank is already there.
func (s *tcpServer) add(c net.Conn, w waiter) (added bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false, nil
	}
	if err := s.takenLocked(w.rank); err != nil {
		return false, err
	}
	s.waiting[c] = w
	if len(s.waiting) == s.x.count-1 {
		s.over = true
		close(s.all)
	}
	return true, nil
}

// ranks returns the waiting ranks.
func (s *tcpServer) ranks() []int {
	var all []int
	for _, w := range s.waiting {
		all = append(all, w.rank)
	}
	slices.Sort(all)
	return all
}

// sendAll sends the id to all ranks concurrently, so that a slow rank does not delay the others.
func (s *tcpServer) sendAll(id []byte) error {
	errs := make(chan error, len(s.waiting)) // s.waiting does not change: all ranks are connected
	for c, w := range s.waiting {
		go func() {
			err := c.SetWriteDeadline(time.Now().Add(helloTime))
			if err == nil {
				_, err = c.Write(w.encodeID(id))
			}
			if err != nil {
				err = fmt.Errorf("to rank %d: %w", w.rank, err)
			}
			errs <- err
		}()
	}
	var all error
	for range s.waiting {
		all = errors.Join(all, <-errs)
	}
	return all
}
