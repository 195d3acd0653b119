package rendezvous

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/puregpu/puregpu/internal/printable"
	"github.com/puregpu/puregpu/internal/secureenv"
)

// secretVariable is the environment variable that has the secret of a [TCP] without one.
const secretVariable = "PUREGPU_RENDEZVOUS_SECRET"

// minSecret is the length of the shortest secret. A shorter one could be guessed from what is sent.
const minSecret = 16

// A TCP passes ids over connections to rank 0.
//
// Rank 0 listens only while it passes something. It may come first or last, and one exchange after the other may use the same
// address; those of two names at the same time take turns.
//
// With a secret, rank 0 and every other rank prove to each other that they know it before a rank counts
// and before the id is sent, and the id cannot be changed on its way. Nothing is encrypted: whoever sees
// the traffic sees the id. Without a secret anybody who can connect can take part.
//
// Peers that prove nothing cannot use up memory or connections: what they may send is small, they have 10
// seconds for it, and the oldest of too many is dropped. Of two processes with the same rank the first
// counts while its connection lasts.
type TCP struct {
	// Address is where the others find rank 0, host:port. Empty, it is made of MASTER_ADDR and MASTER_PORT, which torchrun sets and
	// many scripts for Slurm and mpirun export. As torchrun's own store listens at that port the one taken is higher by
	// [PortOffset], or lower where there is none so high.
	Address string

	// Listen is where rank 0 listens, host:port. Empty, it listens at Address: at each address of this
	// machine that the host's name has there. Give ":port" to listen on all interfaces, as it takes where
	// Address is not this machine's own, but that of a proxy, or where the machine has its own name for a
	// loopback address.
	Listen string

	// Secret is the same on all ranks. It has 16 bytes or more; make it with "openssl rand -hex 32", say.
	// Empty, it is the environment variable PUREGPU_RENDEZVOUS_SECRET, and without that there is none.
	// Do not print a TCP that has one.
	Secret string

	// At is the place of this process; the zero Place is looked for in the environment. Rank 0 waits for as many others as there
	// are in Count.
	At Place
}

// PortOffset is how far from MASTER_PORT a TCP listens that has no address. It is not 1, because runs that share a machine are often
// given ports one after the other.
const PortOffset = 1000

// Place returns the rank of this process and how many there are.
func (t TCP) Place() (rank, count int, err error) {
	p, err := t.At.resolve()
	return p.Rank, p.Count, err
}

// Share passes id from the one who has one to the others, who pass nil.
func (t TCP) Share(ctx context.Context, name string, id []byte) ([]byte, error) {
	p, err := t.At.resolve()
	if err != nil {
		return nil, err
	}
	at := t.Address
	if at == "" {
		if at, err = masterAddress(secureenv.Lookup); err != nil {
			return nil, fmt.Errorf("rendezvous: %s: %w", exchange(name, p), err)
		}
	}
	x := tcpExchange{address: at, listen: t.Listen, token: token(p.Run, name), rank: p.Rank, count: p.Count}
	if x.key, err = t.key(secureenv.Lookup); err == nil {
		id, err = x.share(ctx, id)
	}
	if err != nil {
		return nil, fmt.Errorf("rendezvous: %s at %s: %w", exchange(name, p), printable.Text(at), printable.Error(err))
	}
	return id, nil
}

// key returns the key that the secret makes. Without a secret it is one that anybody can make.
func (t TCP) key(lookup env) (key [sha256.Size]byte, err error) {
	secret, from := t.Secret, "Secret"
	if secret == "" {
		secret, _ = lookup(secretVariable)
		from = secretVariable
	}
	if secret != "" && len(secret) < minSecret {
		return key, fmt.Errorf("%s has less than %d bytes: make a longer one, as by openssl rand -hex 32", from, minSecret)
	}
	return sha256.Sum256([]byte("puregpu rendezvous secret\n" + secret)), nil
}

func (x *tcpExchange) share(ctx context.Context, id []byte) ([]byte, error) {
	switch err := checkAddress(x.address); {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case id == nil:
		if x.rank == 0 {
			x.rank = -1 // the caller is of several ranks, and has not said which this is
		}
		return x.take(ctx)
	}
	if err := checkID(id); err != nil {
		return nil, err
	}
	return id, x.give(ctx, id)
}

// masterAddress returns the address for ids, as what the launcher has told suggests it.
func masterAddress(lookup env) (string, error) {
	host, _ := lookup("MASTER_ADDR")
	port, _ := lookup("MASTER_PORT")
	if host == "" || port == "" {
		return "", errors.New("no address is given, and MASTER_ADDR and MASTER_PORT are not both set: give one that all ranks can connect to")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", fmt.Errorf("MASTER_PORT=%q is not a port: give an address, or set it to a number from 1 to 65535", port)
	}
	if n += PortOffset; n > 65535 {
		n -= 2 * PortOffset
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), nil
}

// checkAddress checks an address that ranks are to connect to.
func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil && (host == "" || port == "" || port == "0") {
		err = &net.AddrError{Err: "no host or no port", Addr: address}
	}
	if err != nil {
		return fmt.Errorf("not a host:port that all ranks can connect to: %w", err)
	}
	return nil
}
