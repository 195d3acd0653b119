// Serve answers HTTP requests: it runs the numbers of a request through a small network, on a GPU,
// or on a simulated one if the machine has none:
//
//	curl -d '{"input": [1, 2, ...]}' localhost:8080/infer
//
// Each request has its own stream, with memory from a pool. When the request's context ends, at the
// deadline or because the client disconnects, work that has not been issued to the device is
// dropped. The flag -requests limits the number of requests in progress. The server refuses further
// requests with status 503. If the device is lost the server refuses all requests, and /ready says
// why. An interrupt shuts the server down gracefully.
//
// With -selftest the server sends itself requests, compares the answers with the host's, and exits.
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

// sizes are the numbers of inputs and outputs of the network's layers.
var sizes = []int{64, 128, 64, 10}

func main() {
	addr := flag.String("addr", "localhost:8080", "`host:port` to listen at")
	requests := flag.Int("requests", 256, "largest `number` of requests in progress")
	timeout := flag.Duration("timeout", 5*time.Second, "`time` for a request")
	grace := flag.Duration("grace", 10*time.Second, "`time` for requests in progress when the server ends")
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
