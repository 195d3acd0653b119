package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// A tcpServer is rank 0's end of an exchange.
type tcpServer struct {
	x    *tcpExchange
	all  chan struct{} // closed when all ranks are there
	wg   sync.WaitGroup
	ctx  context.Context // of the connections
	mu   sync.Mutex
	conn map[net.Conn]int // that wait for the id, and their ranks
	over bool             // takes no more
	odd  error            // the latest that was not as it should be
}

// give waits for all other ranks and sends them the id.
func (x *tcpExchange) give(ctx context.Context, id []byte, listen string) error {
	if x.count == 1 {
		return nil
	}
	l, err := open(ctx, listen)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	s := &tcpServer{x: x, all: make(chan struct{}), ctx: inner, conn: map[net.Conn]int{}}
	closed := closeWith(ctx, l)
	s.wg.Go(func() { s.accept(l) })
	defer func() {
		closed()
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

// open listens. A port that is in use may be so by another exchange, or by a run that is about to end.
func open(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	for pace := tcpPace(); ; {
		l, err := config.Listen(ctx, "tcp", address)
		if err == nil || !inUse(err) {
			return l, err
		}
		if end := pace.wait(ctx); end != nil {
			return nil, fmt.Errorf("%w; set another port, on all ranks, if another program has this one: %w", err, end)
		}
	}
}

// inUse reports whether an error says that somebody else listens. The number is Windows's own, which package syscall does not
// take for the portable one.
func inUse(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.Errno(10048))
}

func (s *tcpServer) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			s.note(err)
			time.Sleep(tcpPace().next) // of too many open files there may be fewer soon
			continue
		}
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

// serve greets one who has connected, and watches the connection.
func (s *tcpServer) serve(c net.Conn) error {
	deadline := time.Now().Add(helloTime)
	var h hello
	if err := receive(c, deadline, &h); err != nil {
		return fmt.Errorf("no greeting: %w", err)
	}
	r := reply{magic, wait, int32(s.x.count)}
	var odd error
	switch {
	case h.Magic != magic:
		return errors.New("something that is no rank has connected")
	case h.Token != s.x.token:
		r.Answer, odd = otherToken, errors.New("a rank of another run, or at an exchange with another name, has connected")
	case int(h.Count) != s.x.count:
		r.Answer, odd = otherCount, fmt.Errorf("%w: rank %d has been told %d, and rank 0 %d", errCount, h.Rank, h.Count, s.x.count)
	}
	if err := send(c, deadline, r); err != nil || odd != nil {
		return errors.Join(odd, err)
	}
	if !s.add(c, int(h.Rank)) {
		return nil
	}
	var nothing [1]byte
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	_, err := c.Read(nothing[:]) // returns when the rank leaves, or the connection is closed here
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.ctx.Err() != nil {
		return nil
	}
	delete(s.conn, c)
	return fmt.Errorf("rank %d had come and is gone: %w", h.Rank, err)
}

// add adds one who waits, unless the exchange is over.
func (s *tcpServer) add(c net.Conn, rank int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.conn[c] = rank
	if len(s.ranks()) == s.x.count-1 {
		s.over = true
		close(s.all)
	}
	return true
}

// ranks returns the ranks that wait, each once, and -1 for each that did not know.
func (s *tcpServer) ranks() []int {
	var all []int
	for _, r := range s.conn {
		all = append(all, r)
	}
	return distinct(all)
}

// sendAll sends the id to all who wait.
func (s *tcpServer) sendAll(id []byte) error {
	var errs []error
	for c, rank := range s.conn { // nobody changes it any more
		if err := send(c, time.Now().Add(helloTime), id); err != nil {
			errs = append(errs, fmt.Errorf("to rank %d: %w", rank, err))
		}
	}
	return errors.Join(errs...)
}
