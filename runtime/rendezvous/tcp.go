package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/puregpu/puregpu/internal/printable"
	"github.com/puregpu/puregpu/internal/secureenv"
)

// A TCP passes ids over connections to rank 0.
//
// Rank 0 listens only while it passes something. It may come first or last, and one exchange after the other may use the same
// address; those of two names at the same time take turns.
type TCP struct {
	// Address is where the others find rank 0, host:port. Empty, it is made of MASTER_ADDR and MASTER_PORT, which torchrun sets and
	// many scripts for Slurm and mpirun export. As torchrun's own store listens at that port the one taken is higher by
	// [PortOffset], or lower where there is none so high.
	Address string

	// Listen is where rank 0 listens. Empty, it is Address's port on all interfaces, for the host's name may well mean another one on
	// its own machine; or on that of Address, if it is localhost or a loopback address.
	Listen string

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
	x := tcpExchange{address: at, token: token(p.Run, name), rank: p.Rank, count: p.Count}
	if id, err = x.share(ctx, id, t.Listen); err != nil {
		return nil, fmt.Errorf("rendezvous: %s at %s: %w", exchange(name, p), printable.Text(at), printable.Error(err))
	}
	return id, nil
}

func (x *tcpExchange) share(ctx context.Context, id []byte, listen string) ([]byte, error) {
	listen, err := listenAddress(x.address, listen)
	switch {
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
	return id, x.give(ctx, id, listen)
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

// listenAddress returns where to listen to be found at an address.
func listenAddress(address, listen string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err == nil && (host == "" || port == "" || port == "0") {
		err = &net.AddrError{Err: "no host or no port", Addr: address}
	}
	if err != nil {
		return "", fmt.Errorf("not a host:port that all ranks can connect to: %w", err)
	}
	if listen != "" {
		return listen, nil
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		host = ""
	}
	return net.JoinHostPort(host, port), nil
}
