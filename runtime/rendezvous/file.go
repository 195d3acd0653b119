package rendezvous

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/puregpu/puregpu/internal/printable"
)

// A File exchanges ids through files.
//
// Every exchange has its own folder in Path. The folder is removed when the exchange is over. Each
// rank but 0 makes a file in the folder with a new random name, and accepts only rank 0's answer to
// that name. Files of a killed run do not disturb an exchange, and rank 0 removes them. Clocks play
// no part. Runs that use the same Path at the same time need different names; see [Place.Run].
//
// Other users can compute the name of the folder. So File makes the folder accessible to the
// process's user only. It refuses a folder that is a link, that belongs to another user, or that
// others can write to. It removes only files that ranks make, follows no link, and reads only
// regular files of up to 64 KiB and a header. Path itself may be shared, as /tmp is: other users
// can then keep the ranks from meeting, but not see or change an id. All ranks must run as the same
// user. If a file system changes owners or modes, as a network file system may for root, use [TCP].
//
// On Windows File does not check owners or access lists, and folders inherit the access list of
// Path. So Path must be a folder that only the job's user can write to.
//
// The end of the context ends the exchange, but not an operating system call that hangs, as on a
// network file system whose server is down.
//
// A network file system may show files of another machine late: NFS with its usual settings after
// up to a minute, and an exchange has several steps that wait for such a file. [TCP] has none.
type File struct {
	// Path is a folder that all ranks share. If it does not exist, File makes it, accessible to
	// this user only. Path may be a link.
	Path string

	// At is the place of this process; the zero Place means the place in the environment. Rank 0
	// waits for all Count - 1 other ranks.
	At Place
}

// Place returns the rank of this process and the number of ranks.
func (f File) Place() (rank, count int, err error) {
	p, err := f.At.resolve()
	return p.Rank, p.Count, err
}

// Share sends rank 0's id to the other ranks, which pass nil.
func (f File) Share(ctx context.Context, name string, id []byte) ([]byte, error) {
	p, err := f.At.resolve()
	if err != nil {
		return nil, err
	}
	t := token(p.Run, name)
	d := fileExchange{path: f.Path, dir: fmt.Sprintf("puregpu-%x", t[:12]), rank: p.Rank, count: p.Count}
	if f.Path == "" {
		err = errors.New("Path is empty: it must be a folder that all ranks share")
	} else {
		id, err = d.share(ctx, id)
	}
	if err != nil {
		return nil, fmt.Errorf("rendezvous: %s through files in %s: %w", exchange(name, p), printable.Text(f.Path), printable.Error(err))
	}
	return id, nil
}

// A fileExchange is one exchange. KEY is the random name of a rank, and SUM distinguishes rank 0's
// attempts. The files are:
//
//	KEY.ask      the rank is waiting
//	KEY.new      rank 0 is writing its answer
//	KEY.id       rank 0 has answered
//	KEY.ack-SUM  the rank, which has renamed its KEY.ask, has the id
//
// When all ranks have the id, rank 0 removes all KEY.id files, which releases the ranks, and waits
// until each has removed its ack. So rank 0 does not begin the next exchange while another rank is
// still in the current one. Files of an earlier run never become an ack of the current attempt.
type fileExchange struct {
	path, dir   string // the shared folder, and the exchange's folder in it
	rank, count int
}

func (d fileExchange) share(ctx context.Context, id []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if id == nil {
		return d.take(ctx)
	}
	if err := checkID(id); err != nil {
		return nil, err
	}
	return id, d.give(ctx, id)
}

// filePace returns the intervals between polls for files.
func filePace() backoff { return backoff{time.Millisecond, 200 * time.Millisecond} }

// A giver is rank 0 in an exchange.
type giver struct {
	fileExchange
	content  []byte          // content of an answer
	ack      string          // kind of the files that acknowledge the answer
	answered map[string]bool // keys that have an answer
	acked    map[string]bool // keys whose ack was there at the last poll
}

// give answers the other ranks until all have the id.
func (d fileExchange) give(ctx context.Context, id []byte) error {
	if d.count == 1 {
		return nil
	}
	g := giver{fileExchange: d, answered: map[string]bool{}}
	g.content, g.ack = pack(id)
	for pace := filePace(); ; {
		all, err := g.look()
		if err != nil && !gone(err) { // leaving ranks remove the folder
			return err
		}
		if all {
			return g.letGo(ctx)
		}
		if end := pace.wait(ctx); end != nil { // the files must stay: a rank whose answer is removed believes that all have the id
			return fmt.Errorf("%s: %w", come(ranksOf(g.acked), d.count-1), errOf(end, err))
		}
	}
}

// look answers the waiting ranks, and reports whether all ranks have the id. If they have, look
// removes files of earlier runs.
func (g *giver) look() (all bool, err error) {
	x, err := g.open(true)
	if err != nil {
		return false, err
	}
	defer x.close()
	files, err := x.entries()
	if err != nil {
		return false, err
	}
	g.acked = map[string]bool{}
	for _, f := range files {
		switch {
		case f.kind == g.ack && g.answered[f.key]:
			g.acked[f.key] = true
		case f.asks() && !g.answered[f.key] && g.awaits(f.key):
			err := g.answer(x, f.key)
			if err != nil && !gone(err) { // if the folder or the file is gone, the rank has left
				return false, fmt.Errorf("answer a rank: %w", err)
			}
			g.answered[f.key] = err == nil
		}
	}
	if len(ranksOf(g.acked)) < g.count-1 {
		return false, nil
	}
	g.clean(x, files)
	return true, nil
}

// awaits reports whether rank 0 waits for the rank with a key.
func (d fileExchange) awaits(key string) bool {
	r := rankOf(key)
	return r == -1 || r > 0 && r < d.count
}

// answer writes an answer under a temporary name, and renames it when it is complete.
func (g *giver) answer(x *exchangeDir, key string) error {
	x.remove(key + ".new") // left by a killed rank 0
	if err := x.create(key+".new", g.content); err != nil {
		return err
	}
	return x.rename(key+".new", key+".id")
}

// clean removes files of earlier runs.
func (g *giver) clean(x *exchangeDir, files []exchangeFile) {
	for _, f := range files {
		if g.acked[f.key] || g.answered[f.key] && !f.asks() {
			continue
		}
		// The names are sorted, so an ask or ack is removed before the id file of the same key. A
		// rank whose ask or ack is gone does not accept the id. If a process has renamed its ask to
		// an ack meanwhile, there are too many processes, and that process waits until its context
		// ends.
		if err := x.remove(f.name()); err == nil && g.answered[f.key] {
			x.remove(f.key + ".id")
		}
	}
}

// letGo releases all ranks, which have the id, and waits until they have left.
func (g *giver) letGo(ctx context.Context) error {
	for pace := filePace(); ; {
		left, err := g.remaining()
		if err == nil && len(g.acked) == 0 {
			return nil
		}
		if end := pace.wait(ctx); end != nil {
			return fmt.Errorf("all ranks have come: %w", errOf(end, errors.Join(err, left)))
		}
	}
}

// remaining removes the answers, and forgets the ranks that have left. The error left says why a
// rank has not left yet, and is nil if all ranks have left.
func (g *giver) remaining() (left, err error) {
	x, err := g.open(false)
	if gone(err) { // the last rank has left and removed the folder
		clear(g.acked)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer x.close()
	for key := range g.acked {
		err := x.remove(key + ".id")
		if err != nil && !gone(err) { // Windows does not remove a file that is being read
			left = err
			continue
		}
		if err := x.exists(key + "." + g.ack); !gone(err) {
			left = errOf(errors.New("a rank that has the id has not finished"), err)
			continue
		}
		delete(g.acked, key)
	}
	if len(g.acked) == 0 {
		x.removeIfEmpty()
	}
	return left, nil
}

// A taker is a rank other than 0 in an exchange.
type taker struct {
	fileExchange
	key  string
	mine string // kind of this rank's file
	had  []byte // the id that this rank has acknowledged
}

// take requests the id and waits for it.
func (d fileExchange) take(ctx context.Context) ([]byte, error) {
	t := taker{fileExchange: d, key: "x-" + rand.Text(), mine: "ask"}
	if d.rank > 0 {
		t.key = strconv.Itoa(d.rank) + "-" + rand.Text()
	}
	if err := t.ask(); err != nil {
		return nil, err
	}
	defer t.leave()
	for pace := filePace(); ; {
		done, err := t.look()
		if err != nil {
			return nil, err
		}
		if done {
			return t.had, nil
		}
		if err := pace.wait(ctx); err != nil {
			if t.had == nil {
				return nil, fmt.Errorf("rank 0 has not come: %w", err)
			}
			return nil, fmt.Errorf("rank 0 has come, and is waiting for other ranks, or has given up: %w", err)
		}
	}
}

// look looks for an answer and acknowledges it. It reports whether rank 0 has released this rank.
func (t *taker) look() (done bool, err error) {
	x, err := t.open(false)
	if err == nil {
		defer x.close()
		var content []byte
		content, err = x.read(t.key + ".id")
		if err == nil {
			id, ack := unpack(content)
			if id == nil || t.mine == ack { // the file is incomplete, or this rank has acknowledged it
				return false, nil
			}
			t.had = id // the first id, or another one from a restarted rank 0
			if err := x.rename(t.key+"."+t.mine, t.key+"."+ack); err != nil && !gone(err) {
				return false, err
			}
			t.mine = ack
			return false, nil
		}
		if gone(err) {
			err = x.exists(t.key + "." + t.mine)
		}
	}
	if gone(err) {
		err = fmt.Errorf("rank 0 has finished without this rank: are there more processes than its Count? %w", err)
	}
	return err == nil && t.had != nil, err
}

// ask makes the file that requests the id.
func (t *taker) ask() (err error) {
	for range 10 {
		var x *exchangeDir
		if x, err = t.open(true); err == nil {
			err = x.create(t.key+".ask", nil)
			x.close()
		}
		if err == nil || !gone(err) { // otherwise the previous exchange has just removed the folder
			return err
		}
	}
	return err
}

// leave removes the files of this rank, and the folder if it is empty.
func (t *taker) leave() {
	x, err := t.open(false)
	if err != nil {
		return
	}
	defer x.close()
	for _, kind := range []string{t.mine, "id", "new"} {
		x.remove(t.key + "." + kind)
	}
	x.removeIfEmpty()
}

// pack returns the content of a file with an id, and the kind of the file that acknowledges it.
// Content and kind are different each time.
func pack(id []byte) (content []byte, ack string) {
	body := make([]byte, nonceSize, nonceSize+len(id))
	rand.Read(body)
	body = append(body, id...)
	sum := sha256.Sum256(body) // so that a reader detects half a file
	return append(sum[:], body...), ackOf(sum)
}

const (
	nonceSize = 16
	headSize  = sha256.Size + nonceSize // bytes before the id
	ackSize   = 6                       // bytes of the sum in the name of an ack
)

// unpack returns the id in a file, and the kind of the file that acknowledges it. The id is nil if
// the file is not complete yet.
func unpack(content []byte) (id []byte, ack string) {
	if len(content) <= headSize {
		return nil, ""
	}
	sum := sha256.Sum256(content[sha256.Size:])
	if !bytes.Equal(sum[:], content[:sha256.Size]) {
		return nil, ""
	}
	return content[headSize:], ackOf(sum)
}

func ackOf(sum [sha256.Size]byte) string { return fmt.Sprintf("ack-%x", sum[:ackSize]) }

// rankOf returns the rank whose files have a key, or -1 if the rank did not know its number.
func rankOf(key string) int {
	head, _, _ := strings.Cut(key, "-")
	if r, err := strconv.Atoi(head); err == nil {
		return r
	}
	return -1
}

func ranksOf(keys map[string]bool) []int {
	var ranks []int
	for key := range keys {
		ranks = append(ranks, rankOf(key))
	}
	return distinct(ranks)
}
