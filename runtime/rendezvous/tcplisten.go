package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// open listens at rank 0's address. Another exchange or an ending run may use the port, and a name
// may soon become resolvable. In these two cases open retries until the context ends.
func (x *tcpExchange) open(ctx context.Context) ([]net.Listener, error) {
	for pace := tcpPace(); ; {
		all, err := x.tryOpen(ctx)
		var unknown *net.DNSError
		if err == nil || !inUse(err) && !errors.As(err, &unknown) {
			return all, err
		}
		if end := pace.wait(ctx); end != nil {
			if inUse(err) {
				err = fmt.Errorf("%w; if another process is rank 0 too, give it its own rank; if another program uses the port, set another one on all ranks", err)
			}
			return nil, fmt.Errorf("%w: %w", err, end)
		}
	}
}

func (x *tcpExchange) tryOpen(ctx context.Context) (all []net.Listener, err error) {
	var config net.ListenConfig
	if x.listen != "" {
		l, err := config.Listen(ctx, "tcp", x.listen)
		if err != nil {
			return nil, err
		}
		return []net.Listener{l}, nil
	}
	host, port, err := net.SplitHostPort(x.address)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, ip := range unique(ips) {
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort(ip.String(), port))
		if err == nil {
			all = append(all, l)
		} else if errs = append(errs, err); inUse(err) {
			closeAll(all)
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("rank 0 cannot listen at the address that the ranks connect to: set Listen to one of this machine that they reach, or to %q for all interfaces: %w",
			net.JoinHostPort("", port), errors.Join(errs...))
	}
	return all, nil
}

// unique returns each address once. A system may list an address several times for a name.
func unique(ips []netip.Addr) []netip.Addr {
	var all []netip.Addr
	for _, ip := range ips {
		if ip = ip.Unmap(); !slices.Contains(all, ip) {
			all = append(all, ip)
		}
	}
	return all
}

func closeAll(all []net.Listener) {
	for _, l := range all {
		l.Close()
	}
}

// unreachable returns an error if other machines cannot reach any of the listeners although the
// address looks reachable: some systems map their own name to a loopback address.
func (x *tcpExchange) unreachable(all []net.Listener) error {
	host, port, _ := net.SplitHostPort(x.address)
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	for _, l := range all {
		if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
			return nil
		}
	}
	return fmt.Errorf("rank 0 listens at %v, which other machines cannot reach: set Listen to another address of %s, or to %q for all interfaces",
		all[0].Addr(), host, net.JoinHostPort("", port))
}

// inUse reports whether an error says that the port is in use. Windows has a number of its own for
// that error, 10048, which package syscall does not map to the portable error.
func inUse(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.Errno(10048))
}
