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

// A File passes ids through files.
//
// Every exchange has a folder of its own in Path, which is removed when the exchange is over. Each rank but 0 makes a file there
// whose name nobody has used before, and takes only the answer that rank 0 gives to that name. Files that a killed run left behind
// disturb nobody, and rank 0 removes them. Clocks play no part. Runs that use the same Path at the same time need different names,
// see [Place.Run], or they mix.
//
// Anybody can compute the name of the folder. So File makes it for the user of the process alone, and
// refuses one that is a link, that belongs to another user, or that others can write to. It removes only
// files that ranks make, follows no link, and reads only regular files of up to 64 KiB and a header.
// Path itself may be shared, as /tmp is: others can then keep the ranks from meeting, but not see or
// change an id. All ranks must run as the same user. A file system that changes owners or modes, as a
// network file system may for root, cannot be used; take [TCP] there.
//
// On Windows File does not look at owners or access lists, and folders inherit the access list of Path.
// Path must therefore be a folder that only the job's user can write to.
//
// A context that ends ends the exchange, but not a call of the operating system that hangs, as in a
// network file system whose server is gone.
//
// A network file system may show a machine only after a while what another has written: NFS with its usual settings after up
// to a minute, and an exchange has three such steps. [TCP] has none.
type File struct {
	// Path is a folder that all ranks share. It is made, for this user alone, if it is not there. It may be
	// a link.
	Path string

	// At is the place of this process; the zero Place is looked for in the environment. Rank 0 waits for as many others as there
	// are in Count.
	At Place
}

// Place returns the rank of this process and how many there are.
func (f File) Place() (rank, count int, err error) {
	p, err := f.At.resolve()
	return p.Rank, p.Count, err
}

// Share passes id from the one who has one to the others, who pass nil.
func (f File) Share(ctx context.Context, name string, id []byte) ([]byte, error) {
	p, err := f.At.resolve()
	if err != nil {
		return nil, err
	}
	t := token(p.Run, name)
	d := fileExchange{path: f.Path, dir: fmt.Sprintf("puregpu-%x", t[:12]), rank: p.Rank, count: p.Count}
	if f.Path == "" {
		err = errors.New("no path is given: it must be a folder that all ranks share")
	} else {
		id, err = d.share(ctx, id)
	}
	if err != nil {
		return nil, fmt.Errorf("rendezvous: %s through files in %s: %w", exchange(name, p), printable.Text(f.Path), printable.Error(err))
	}
	return id, nil
}

// A fileExchange is one exchange. With KEY for the random name of a rank, and SUM for what tells one attempt of rank 0 from
// another, the files are:
//
//	KEY.ask      the rank is there
//	KEY.new      rank 0 is writing its answer
//	KEY.id       rank 0 has answered it
//	KEY.ack-SUM  the rank, which has renamed its KEY.ask, has the id
//
// When all have, rank 0 removes all KEY.id, which lets them go, and waits until each has removed its ack. So nobody can be in the
// next exchange while another is in this one, and what rank 0 finds is of this exchange or left behind; what is left behind
// never becomes an ack of this attempt.
type fileExchange struct {
	path, dir   string // the folder that all share, and in it that of the exchange
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

// filePace is how often files are looked for.
func filePace() backoff { return backoff{time.Millisecond, 200 * time.Millisecond} }

// A giver is rank 0 in an exchange.
type giver struct {
	fileExchange
	content  []byte          // of an answer
	ack      string          // the kind of the files that acknowledge it
	answered map[string]bool // by key
	acked    map[string]bool // by key, as of the last look
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
		if err != nil && !gone(err) { // ranks that leave take the folder with them
			return err
		}
		if all {
			return g.letGo(ctx)
		}
		if end := pace.wait(ctx); end != nil { // the files are left to who asked: without one the asker would think that all is well
			return fmt.Errorf("%s: %w", come(ranksOf(g.acked), d.count-1), errOf(end, err))
		}
	}
}

// look answers the ranks that have come. It reports whether all have the id, and then removes what
// earlier runs left.
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
			if err != nil && !gone(err) { // then the rank has left, and the folder with it
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

// awaits reports whether rank 0 waits for the rank that has a key.
func (d fileExchange) awaits(key string) bool {
	r := rankOf(key)
	return r == -1 || r > 0 && r < d.count
}

// answer writes an answer. It has its name when it is whole.
func (g *giver) answer(x *exchangeDir, key string) error {
	x.remove(key + ".new") // of a rank 0 that was killed
	if err := x.create(key+".new", g.content); err != nil {
		return err
	}
	return x.rename(key+".new", key+".id")
}

// clean removes what earlier runs left.
func (g *giver) clean(x *exchangeDir, files []exchangeFile) {
	for _, f := range files {
		if g.acked[f.key] || g.answered[f.key] && !f.asks() {
			continue
		}
		// A rank that finds its own ask or ack gone does not take the answer; they come before the id, as the files are sorted. A rank that
		// has made an ack of an ask in the meantime is one more than there are, and waits in vain.
		if err := x.remove(f.name()); err == nil && g.answered[f.key] {
			x.remove(f.key + ".id")
		}
	}
}

// letGo lets all ranks go, which have the id, and waits until they have gone.
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

// remaining removes the answers, and forgets the ranks that have gone. It returns why others have not.
func (g *giver) remaining() (left, err error) {
	x, err := g.open(false)
	if gone(err) { // the last of them has removed it
		clear(g.acked)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer x.close()
	for key := range g.acked {
		err := x.remove(key + ".id")
		if err != nil && !gone(err) { // Windows removes no file that is being read
			left = err
			continue
		}
		if err := x.exists(key + "." + g.ack); !gone(err) {
			left = errOf(errors.New("a rank that has the id does not go on"), err)
			continue
		}
		delete(g.acked, key)
	}
	if len(g.acked) == 0 {
		x.removeIfEmpty()
	}
	return left, nil
}

// A taker is another rank in an exchange.
type taker struct {
	fileExchange
	key  string
	mine string // the kind of its file
	had  []byte // the id it has acknowledged
}

// take asks for the id and takes it.
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
			return nil, fmt.Errorf("rank 0 has come, and waits for others or has given up: %w", err)
		}
	}
}

// look looks for an answer and acknowledges it. It reports whether rank 0 has let this rank go.
func (t *taker) look() (done bool, err error) {
	x, err := t.open(false)
	if err == nil {
		defer x.close()
		var content []byte
		content, err = x.read(t.key + ".id")
		if err == nil {
			id, ack := unpack(content)
			if id == nil || t.mine == ack { // half of it, or nothing new
				return false, nil
			}
			t.had = id // the first, or that of a rank 0 that has begun again
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
		err = fmt.Errorf("rank 0 has gone on without this one: are there more processes than it was told of? %w", err)
	}
	return err == nil && t.had != nil, err
}

// ask makes the file that asks for the id.
func (t *taker) ask() (err error) {
	for range 10 {
		var x *exchangeDir
		if x, err = t.open(true); err == nil {
			err = x.create(t.key+".ask", nil)
			x.close()
		}
		if err == nil || !gone(err) { // else the folder has just gone with the exchange before
			return err
		}
	}
	return err
}

// leave removes the files of this rank, and the folder if all are gone.
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

// pack returns what a file with an id contains, and the kind of the file that acknowledges it. It is different every time.
func pack(id []byte) (content []byte, ack string) {
	body := make([]byte, nonceSize, nonceSize+len(id))
	rand.Read(body)
	body = append(body, id...)
	sum := sha256.Sum256(body) // for a reader who finds half a file
	return append(sum[:], body...), ackOf(sum)
}

const (
	nonceSize = 16
	headSize  = sha256.Size + nonceSize // what stands before the id
	ackSize   = 6                       // bytes of the sum that tell one attempt from another
)

// unpack returns the id in a file; nil if the file is not whole yet.
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

// rankOf returns the rank of the one whose files have a key, -1 if it did not know.
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
