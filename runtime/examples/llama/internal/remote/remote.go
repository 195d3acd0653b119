// Package remote runs the shards of a model in several processes, for example one for each GPU.
// Rank 0 has the engine, and sends each plan to the other ranks. They reply when the plan is done.
package remote

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/model"
)

// A Rendezvous passes data of rank 0 to the other ranks. The types of package rendezvous implement
// it.
type Rendezvous interface {
	Place() (rank, count int, err error)
	Share(ctx context.Context, name string, id []byte) ([]byte, error)
}

// Rank 0 sends messages in gob's format. A message is a plan, or the end.
type message struct {
	Plan model.Plan
	End  bool
}

// reply is the answer to a plan. Error is empty if the plan succeeded.
type reply struct{ Error string }

// hello is the first message of a rank.
type hello struct {
	Rank int
	Info model.Info
}

// Lead connects rank 0 to the other ranks, which reach rank 0 at host. It returns the shards of the
// other ranks in the order of the ranks. It waits until all ranks have connected or the context
// ends. It fails if a rank's Info does not match info, that of rank 0's own shard. When a rank
// fails or its connection breaks, the function lost is called with the error.
func Lead(ctx context.Context, host string, meet Rendezvous, info model.Info, lost func(error)) (_ []model.Runner, err error) {
	_, count, err := meet.Place()
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	key := rand.Text() // a rank sends the key first, so no other program connects by mistake
	if _, err := meet.Share(ctx, "plans", []byte(key+" "+net.JoinHostPort(host, port))); err != nil {
		return nil, err
	}
	runners := make([]model.Runner, count-1)
	defer func() {
		for _, r := range runners {
			if err != nil && r != nil {
				err = errors.Join(err, r.Close())
			}
		}
	}()
	for left := count - 1; left > 0; {
		conn, err := l.Accept()
		if err != nil {
			return nil, fmt.Errorf("%d of %d ranks have not connected: %w", left, count-1, errors.Join(context.Cause(ctx), err))
		}
		r := &runner{conn: conn, out: gob.NewEncoder(conn), lost: lost, ended: make(chan struct{})}
		in, rank, err := r.greet(ctx, key)
		if err != nil || rank < 1 || rank >= count || runners[rank-1] != nil {
			conn.Close()
			continue
		}
		r.name = fmt.Sprintf("rank %d at %v", rank, conn.RemoteAddr())
		runners[rank-1] = r
		left--
		go r.receive(in)
		if err := info.Matches(r.info); err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return runners, nil
}

// A runner is another rank's shard.
type runner struct {
	name  string
	conn  net.Conn
	out   *gob.Encoder
	info  model.Info
	lost  func(error)
	ended chan struct{} // closed when nothing more is received

	mu      sync.Mutex   // protects the following fields
	waiting []chan error // one for each plan without a reply, the oldest first
	err     error        // why the rank runs no more plans
}

// greet checks the key of a rank, and receives the rank's first message. greet fails after 10
// seconds, or when the context ends.
func (r *runner) greet(ctx context.Context, key string) (in *gob.Decoder, rank int, err error) {
	defer context.AfterFunc(ctx, func() { r.conn.Close() })()
	r.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	defer r.conn.SetReadDeadline(time.Time{})
	shown := make([]byte, len(key))
	if _, err := io.ReadFull(r.conn, shown); err != nil {
		return nil, 0, err
	}
	if subtle.ConstantTimeCompare(shown, []byte(key)) == 0 {
		return nil, 0, errors.New("wrong key")
	}
	var h hello
	in = gob.NewDecoder(r.conn)
	err = in.Decode(&h)
	r.info = h.Info
	return in, h.Rank, err
}

// receive receives replies until one has an error, or the connection ends.
func (r *runner) receive(in *gob.Decoder) {
	defer close(r.ended)
	for {
		var a reply
		if err := in.Decode(&a); err != nil {
			r.fail(fmt.Errorf("%s: the connection is lost: %w", r.name, err))
			return
		}
		if a.Error != "" {
			r.fail(fmt.Errorf("%s: %s", r.name, a.Error))
			return
		}
		r.mu.Lock()
		if len(r.waiting) > 0 {
			r.waiting[0] <- nil
			r.waiting = append(r.waiting[:0], r.waiting[1:]...)
		}
		r.mu.Unlock()
	}
}

// fail makes all plans that have no reply yet return err. Later plans return the first error.
func (r *runner) fail(err error) {
	r.mu.Lock()
	first := r.err == nil
	if first {
		r.err = err
	}
	for _, w := range r.waiting {
		w <- err
	}
	r.waiting = nil
	r.mu.Unlock()
	if first {
		r.conn.Close()
		r.lost(err)
	}
}

func (r *runner) Info() model.Info { return r.info }

func (r *runner) Run(p model.Plan, _ []int32) (func(context.Context) error, error) {
	replied := make(chan error, 1)
	r.mu.Lock()
	if r.err != nil {
		defer r.mu.Unlock()
		return nil, r.err
	}
	r.waiting = append(r.waiting, replied)
	r.mu.Unlock()
	if err := r.out.Encode(message{Plan: p}); err != nil {
		r.fail(fmt.Errorf("%s: the connection is lost: %w", r.name, err))
		return nil, <-replied
	}
	return func(ctx context.Context) error {
		select {
		case err := <-replied:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}, nil
}

// Close tells the rank to end, and waits up to 10 seconds until the rank closes the connection.
func (r *runner) Close() error {
	r.mu.Lock()
	broken := r.err
	if broken == nil {
		r.err = net.ErrClosed
	}
	r.mu.Unlock()
	if broken == nil {
		r.conn.SetDeadline(time.Now().Add(10 * time.Second))
		r.out.Encode(message{End: true})
	}
	<-r.ended
	r.conn.Close()
	return nil
}

// A Follower runs the plans of rank 0 on the shard of another rank.
type Follower struct {
	shard model.Runner
	conn  net.Conn
	out   *gob.Encoder
}

// Join connects a rank to rank 0. The context limits only Join, not the Follower.
func Join(ctx context.Context, meet Rendezvous, shard model.Runner) (*Follower, error) {
	rank, _, err := meet.Place()
	if err != nil {
		return nil, err
	}
	id, err := meet.Share(ctx, "plans", nil)
	if err != nil {
		return nil, err
	}
	key, address, _ := strings.Cut(string(id), " ")
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	f := &Follower{shard, conn, gob.NewEncoder(conn)}
	if _, err = io.WriteString(conn, key); err == nil {
		err = f.out.Encode(hello{rank, shard.Info()})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("join rank 0 at %s: %w", address, err), conn.Close())
	}
	return f, nil
}

// Run runs plans until rank 0 ends, an error occurs, or the context ends. It does not close the
// shard.
func (f *Follower) Run(ctx context.Context) error {
	defer f.conn.Close()
	defer context.AfterFunc(ctx, func() { f.conn.Close() })()
	in := gob.NewDecoder(f.conn)
	steps := make(chan func(context.Context) error, 8) // in flight
	failed := make(chan error, 1)
	go func() {
		err := answer(ctx, steps, f.out)
		if err != nil {
			f.conn.Close() // ends the loop below
		}
		failed <- err
	}()
	var err error
	for {
		var m message
		if err = in.Decode(&m); err != nil || m.End {
			break
		}
		done, failure := f.shard.Run(m.Plan, make([]int32, m.Plan.Tokens()))
		if failure != nil {
			done = func(context.Context) error { return failure }
		}
		steps <- done
	}
	close(steps)
	if failure := <-failed; failure != nil {
		return failure
	}
	if err != nil {
		err = errors.Join(context.Cause(ctx), fmt.Errorf("the connection to rank 0 at %v is lost: %w", f.conn.RemoteAddr(), err))
	}
	return err
}

// answer waits for each step, and replies, until the channel is closed. It returns the first error
// of a step or of the connection. Steps after an error get no reply.
func answer(ctx context.Context, steps <-chan func(context.Context) error, out *gob.Encoder) (failed error) {
	for done := range steps {
		if failed != nil {
			continue
		}
		var a reply
		if failed = done(ctx); failed != nil {
			a.Error = failed.Error()
		}
		if err := out.Encode(a); failed == nil {
			failed = err
		}
	}
	return failed
}
