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

// secretVariable is the environment variable with the secret for a [TCP] whose Secret is empty.
const secretVariable = "PUREGPU_RENDEZVOUS_SECRET"

// minSecret is the length of the shortest secret. A shorter one could be guessed from the traffic.
const minSecret = 16

// A TCP exchanges ids over connections to rank 0.
//
// Rank 0 listens only during an exchange. Rank 0 may come first or last. Exchanges may use the same
// address one after the other; concurrent exchanges of two names take turns.
//
// With a secret, rank 0 and every other rank prove to each other that they know the secret. Only
// then does rank 0 count the rank and send the id, and the id cannot be changed in transit. Nothing
// is encrypted: an eavesdropper sees the id. Without a secret any process that can connect can take
// part.
//
// Peers without a proof cannot use up memory or connections: they may send little, within 10
// seconds, and the oldest of too many is dropped. Of two processes with the same rank the first
// counts while its connection lasts.
type TCP struct {
	// Address is rank 0's address for the other ranks, host:port. If it is empty, it is made from
	// MASTER_ADDR and MASTER_PORT, which torchrun sets and many scripts for Slurm and mpirun
	// export. torchrun's own store listens at MASTER_PORT, so the port is MASTER_PORT plus
	// [PortOffset], or MASTER_PORT minus PortOffset if the sum is above 65535.
	Address string

	// Listen is the address at which rank 0 listens, host:port. If Listen is empty, rank 0 looks up
	// the host in Address, and listens at each of the host's IP addresses that this machine has.
	// Use ":port", for all interfaces, if Address is a proxy's, or if the machine maps its own name
	// to a loopback address.
	Listen string

	// Secret is the same on all ranks. It has at least 16 bytes; make it with "openssl rand -hex
	// 32", for example. If it is empty, the environment variable PUREGPU_RENDEZVOUS_SECRET is used;
	// if that is empty too, there is no secret. Do not print a TCP with a secret.
	Secret string

	// At is the place of this process; the zero Place means the place in the environment. Rank 0
	// waits for all Count - 1 other ranks.
	At Place
}

// PortOffset is the distance from MASTER_PORT to the port of a TCP without an Address. PortOffset
// is not 1, because runs that share a machine often get consecutive ports.
const PortOffset = 1000

// Place returns the rank of this process and the number of ranks.
func (t TCP) Place() (rank, count int, err error) {
	p, err := t.At.resolve()
	return p.Rank, p.Count, err
}

// Share sends rank 0's id to the other ranks, which pass nil.
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

// key derives the key from the secret. Without a secret every process can compute the key.
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
			x.rank = -1 // one TCP serves several ranks, so this rank's number is unknown
		}
		return x.take(ctx)
	}
	if err := checkID(id); err != nil {
		return nil, err
	}
	return id, x.give(ctx, id)
}

// masterAddress returns the address derived from the launcher's variables.
func masterAddress(lookup env) (string, error) {
	host, _ := lookup("MASTER_ADDR")
	port, _ := lookup("MASTER_PORT")
	if host == "" || port == "" {
		return "", errors.New("Address is empty, and MASTER_ADDR and MASTER_PORT are not both set: set an Address that all ranks can connect to")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", fmt.Errorf("MASTER_PORT=%q is not a port: set an Address, or set it to a number from 1 to 65535", port)
	}
	if n += PortOffset; n > 65535 {
		n -= 2 * PortOffset
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), nil
}

// checkAddress checks an address that ranks will connect to.
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
