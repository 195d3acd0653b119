package rendezvous

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/puregpu/puregpu/internal/busyfile"
)

// A File passes ids through files.
//
// Every exchange has a folder of its own in Path, which is gone when it is over. Each rank but 0 makes a file there whose name
// nobody has used before, and takes only what rank 0 answers to that name: files that an earlier run has left, because it
// was killed, are in nobody's way, and rank 0 removes them. Clocks play no part. Runs that use the same Path at the same time
// need different names, see [Place.Run], or they mix.
//
// A network's file system may show a machine only after a while what another has written: NFS with its usual settings after up
// to a minute, and an exchange has three such steps. [TCP] has none.
type File struct {
	// Path is a folder that all ranks share. It is made if it is not there.
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
	d := fileExchange{dir: filepath.Join(f.Path, fmt.Sprintf("puregpu-%x", t[:12])), rank: p.Rank, count: p.Count}
	if f.Path == "" {
		err = errors.New("no path is given: it must be a folder that all ranks share")
	} else {
		id, err = d.share(ctx, id)
	}
	if err != nil {
		return nil, fmt.Errorf("rendezvous: %s through files in %s: %w", exchange(name, p), f.Path, err)
	}
	return id, nil
}

// A fileExchange is one exchange. With KEY for the random name of a rank, and SUM for what tells one attempt of rank 0 from
// another, the files are:
//
//	KEY.ask      the rank is there
//	KEY.id       rank 0 has answered it
//	KEY.ack-SUM  the rank, which has renamed its KEY.ask, has the id
//
// When all have, rank 0 removes all KEY.id, which lets them go, and waits until each has removed its ack. So nobody can be in the
// next exchange while another is in this one, and what rank 0 finds is of this exchange or left behind; what is left behind
// never becomes an ack of this attempt.
type fileExchange struct {
	dir         string
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

// mkdir makes the folder. Those who have left an exchange may be removing it.
func (d fileExchange) mkdir() error {
	err := busyfile.Retry(func() error { return os.MkdirAll(d.dir, 0o700) }) // an id lets whoever has it take part
	if err != nil {
		if path := filepath.Dir(d.dir); isFile(path) { // of which Windows says that it is not there
			return &fs.PathError{Op: "mkdir", Path: path, Err: errors.New("a file, not a directory")}
		}
	}
	return err
}

func isFile(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && !fi.IsDir()
}

func rename(from, to string) error {
	return busyfile.Retry(func() error { return os.Rename(from, to) })
}

func remove(name string) error {
	return busyfile.Retry(func() error { return os.Remove(name) })
}

func (d fileExchange) file(key, kind string) string { return filepath.Join(d.dir, key+"."+kind) }

// give answers the other ranks until all have the id.
func (d fileExchange) give(ctx context.Context, id []byte) error {
	if d.count == 1 {
		return nil
	}
	content, ack := pack(id)
	answered := map[string]bool{}
	for pace := filePace(); ; {
		if err := d.mkdir(); err != nil {
			return err
		}
		var entries []fs.DirEntry
		err := busyfile.Retry(func() (err error) { entries, err = os.ReadDir(d.dir); return err })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		acked := map[string]bool{}
		for _, e := range entries {
			key, kind, _ := strings.Cut(e.Name(), ".")
			switch {
			case kind == ack && answered[key]:
				acked[key] = true
			case asks(kind) && !answered[key] && rankOf(key) < d.count: // an ack of a rank 0 that has given up asks too
				err := d.write(key, content)
				if err != nil && !errors.Is(err, fs.ErrNotExist) { // then who asked has left, and the folder with it
					return fmt.Errorf("answer a rank: %w", err)
				}
				answered[key] = err == nil
			}
		}
		ranks := ranksOf(acked)
		if len(ranks) >= d.count-1 {
			return d.letGo(ctx, entries, answered, acked, ack)
		}
		if err := pace.wait(ctx); err != nil { // the files are left to who asked: without one the asker would think that all is well
			return fmt.Errorf("%s: %w", come(ranks, d.count-1), err)
		}
	}
}

// write writes an answer, under its name when it is whole.
func (d fileExchange) write(key string, content []byte) error {
	if err := busyfile.Retry(func() error { return os.WriteFile(d.file(key, "new"), content, 0o600) }); err != nil {
		return err
	}
	return rename(d.file(key, "new"), d.file(key, "id"))
}

// asks reports whether a file of this kind is one of a rank that waits.
func asks(kind string) bool { return kind == "ask" || strings.HasPrefix(kind, "ack-") }

// letGo lets all go who have the id, and removes what others have left.
func (d fileExchange) letGo(ctx context.Context, entries []fs.DirEntry, answered, acked map[string]bool, ack string) error {
	for _, e := range entries {
		key, kind, _ := strings.Cut(e.Name(), ".")
		if acked[key] || answered[key] && !asks(kind) {
			continue
		}
		// Who finds its own ask or ack gone does not take the answer; they come before the id, as the entries are sorted. Who has
		// made an ack of an ask in the meantime is one more than there are, and waits in vain.
		if err := remove(d.file(key, kind)); err == nil && answered[key] {
			remove(d.file(key, "id"))
		}
	}
	for pace := filePace(); ; {
		var left error
		for key := range acked {
			err := os.Remove(d.file(key, "id"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // Windows removes no file that is being read
				left = err
				continue
			}
			if _, err := os.Lstat(d.file(key, ack)); !errors.Is(err, fs.ErrNotExist) {
				left = errOf(errors.New("a rank that has the id does not go on"), err)
				continue
			}
			delete(acked, key)
		}
		if len(acked) == 0 {
			os.Remove(d.dir) // if nobody else is in it
			return nil
		}
		if err := pace.wait(ctx); err != nil {
			return fmt.Errorf("all ranks have come: %w", errOf(err, left))
		}
	}
}

// take asks for the id and takes it.
func (d fileExchange) take(ctx context.Context) ([]byte, error) {
	key := "x-" + rand.Text()
	if d.rank > 0 {
		key = strconv.Itoa(d.rank) + "-" + rand.Text()
	}
	if err := d.ask(key); err != nil {
		return nil, err
	}
	mine, had := "ask", []byte(nil)
	defer func() {
		for _, kind := range []string{mine, "id", "new"} {
			remove(d.file(key, kind))
		}
		os.Remove(d.dir) // if all are gone
	}()
	for pace := filePace(); ; {
		var content []byte
		err := busyfile.Retry(func() (err error) { content, err = os.ReadFile(d.file(key, "id")); return err })
		id, ack := unpack(content)
		switch {
		case err == nil && id != nil && mine != ack: // the first, or that of a rank 0 that has begun again
			had = id
			if err := rename(d.file(key, mine), d.file(key, ack)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			mine = ack
		case err == nil: // half of it, or nothing new
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		default:
			if _, err := os.Lstat(d.file(key, mine)); err != nil {
				return nil, fmt.Errorf("rank 0 has gone on without this one: are there more processes than it was told of? %w", err)
			}
			if had != nil {
				return had, nil
			}
		}
		if err := pace.wait(ctx); err != nil {
			if had == nil {
				return nil, fmt.Errorf("rank 0 has not come: %w", err)
			}
			return nil, fmt.Errorf("rank 0 has come, and waits for others or has given up: %w", err)
		}
	}
}

// ask makes the file that asks for the id.
func (d fileExchange) ask(key string) (err error) {
	for range 10 {
		if err = d.mkdir(); err != nil {
			return err
		}
		var f *os.File
		if err = busyfile.Retry(func() (err error) {
			f, err = os.OpenFile(d.file(key, "ask"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			return err
		}); err == nil {
			return f.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) { // else the folder has just gone with the exchange before
			return err
		}
	}
	return err
}

// pack returns what a file with an id contains, and the kind of the file that acknowledges it. It is different every time.
func pack(id []byte) (content []byte, ack string) {
	body := make([]byte, nonceSize, nonceSize+len(id))
	rand.Read(body)
	body = append(body, id...)
	sum := sha256.Sum256(body) // for a reader who finds half a file
	return append(sum[:], body...), ackOf(sum)
}

const nonceSize = 16

// unpack returns the id in a file; nil if the file is not whole yet.
func unpack(content []byte) (id []byte, ack string) {
	if len(content) <= sha256.Size+nonceSize {
		return nil, ""
	}
	sum := sha256.Sum256(content[sha256.Size:])
	if !bytes.Equal(sum[:], content[:sha256.Size]) {
		return nil, ""
	}
	return content[sha256.Size+nonceSize:], ackOf(sum)
}

func ackOf(sum [sha256.Size]byte) string { return fmt.Sprintf("ack-%x", sum[:6]) }

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
