// Serve answers HTTP requests with what a small network makes of their numbers, on the GPU that there is, or on a simulated one:
//
//	curl -d '{"input": [1, 2, ...]}' localhost:8080/infer
//
// Each request is a stream of its own, with memory from a pool, and ends with its context: by its deadline, or when the client goes
// away. As many requests are under way as -requests says; others are refused with status 503. When the device is lost all
// are, and /ready says why. An interrupt ends the server in good order.
//
// With -selftest it sends itself requests, compares the answers with the host's, and ends.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/drivers"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// sizes are how many inputs and outputs the network's layers have.
var sizes = []int{64, 128, 64, 10}

func main() {
	addr := flag.String("addr", "localhost:8080", "`host:port` to listen at")
	requests := flag.Int("requests", 256, "`number` of requests under way at most")
	timeout := flag.Duration("timeout", 5*time.Second, "`time` for a request")
	grace := flag.Duration("grace", 10*time.Second, "`time` for requests that are under way when the server ends")
	test := flag.Bool("selftest", false, "send requests to a server at a port of its own, check the answers, and end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d, err := drivers.Best(drivers.WithSim(simdriver.Config{Kernels: kernels}))
	if err != nil {
		log.Fatal(err)
	}
	m, err := newModel(ctx, d, gpu.Options{Queues: 4}, newNetwork(sizes...))
	if err != nil {
		log.Fatal(err)
	}
	if *test {
		*addr = "localhost:0"
	}
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	s := newServer(m, *requests, *timeout)
	if *test {
		err = selftest(ctx, s, l)
	} else {
		log.Printf("serving at http://%v/infer on %s", l.Addr(), m.dev.Info().Name)
		err = s.serve(ctx, l, *grace)
	}
	if err != nil {
		log.Fatal(err)
	}
}
