// Package ondriver is what the example programs of package gpu share: they run on the driver that a flag names.
package ondriver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/drivers"
)

// limit is how long a program may take.
const limit = 30 * time.Second

// Main runs a program with its arguments and returns its exit status. Without the flag -driver it runs on the best driver
// there is, and says why that is the best; sim says what the simulated GPU simulates.
func Main(name string, args []string, stdout, stderr io.Writer, sim drivers.Option, run func(context.Context, driver.Driver, io.Writer) error) int {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	on := flags.String("driver", "", "`name` of the driver, cuda or sim (default: the GPU that there is, else sim)")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "%s: takes no arguments, got %q\n", name, flags.Args())
		return 2
	}
	var d driver.Driver
	var err error
	if *on != "" {
		d, err = drivers.Open(*on, sim)
	} else {
		var reason string
		d, reason = drivers.Best(sim)
		fmt.Fprintf(stdout, "%s: on %s\n", name, reason)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		err = run(ctx, d, stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}
