package metrics_test

import (
	"expvar"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/metrics"
)

func ExampleSource() {
	dev, err := gpu.Open(simdriver.New(simdriver.Config{}), 0, gpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	weights, err := dev.Alloc(gpu.DeviceMem, 64<<20)
	if err != nil {
		log.Fatal(err)
	}
	defer weights.Close()

	source := &metrics.Source{Devices: []*gpu.Device{dev}}
	expvar.Publish("gpu", source) // at /debug/vars
	mux := http.NewServeMux()
	mux.Handle("/metrics", source)

	server := httptest.NewServer(mux)
	defer server.Close()
	answer, err := http.Get(server.URL + "/metrics")
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "puregpu_memory_bytes") {
			fmt.Print(line)
		}
	}
	// Output:
	// # TYPE puregpu_memory_bytes gauge
	// # UNIT puregpu_memory_bytes bytes
	// # HELP puregpu_memory_bytes Bytes that live buffers have allocated, of the device's memory or of the host's.
	// puregpu_memory_bytes{device="0",name="Simulated GPU 0",memory="device"} 67108864
	// puregpu_memory_bytes{device="0",name="Simulated GPU 0",memory="host"} 0
}
