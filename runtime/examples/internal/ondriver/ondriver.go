// Package ondriver is what the example programs of package gpu share: they run on the driver that a flag names.
package ondriver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/drivers"
)

// limit is how long a program may take.
const limit = 30 * time.Second

// A Program is one of the examples.
type Program struct {
	Name string

	// Flags adds flags of the program's own to -driver. It may be nil.
	Flags func(*flag.FlagSet)

	// Sim says what the simulated GPU simulates, when the flags have been read.
	Sim func() drivers.Option

	// Missing reports whether an error of Run says that the machine lacks what the program needs, which is no failure if the driver
	// was not asked for. It may be nil.
	Missing func(error) bool

	Run func(context.Context, driver.Driver, io.Writer) error
}

// Main runs a program that has no flags of its own.
func Main(name string, args []string, stdout, stderr io.Writer, sim drivers.Option, run func(context.Context, driver.Driver, io.Writer) error) int {
	return Program{Name: name, Sim: func() drivers.Option { return sim }, Run: run}.Main(args, stdout, stderr)
}

// Main runs the program with its arguments and returns its exit status. Without the flag -driver it runs on the driver that
// drivers.Best opens, and says which one that is.
func (p Program) Main(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	on := flags.String("driver", "", "`name` of the driver, cuda, hip or sim (default: $PUREGPU_DRIVER, else the GPU that there is, else sim)")
	if p.Flags != nil {
		p.Flags(flags)
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "%s: takes no arguments, got %q\n", p.Name, flags.Args())
		return 2
	}
	var d driver.Driver
	var err error
	if *on != "" {
		d, err = drivers.Open(*on, p.Sim())
	} else if d, err = drivers.Best(p.Sim(), drivers.WithLogger(slog.New(slog.NewTextHandler(stderr, nil)))); err == nil {
		fmt.Fprintf(stdout, "%s: on the driver %s\n", p.Name, d.Name())
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		err = p.Run(ctx, d, stdout)
	}
	switch {
	case err == nil:
		return 0
	case *on == "" && d != nil && p.Missing != nil && p.Missing(err):
		fmt.Fprintf(stdout, "%s: not run: %s\n", p.Name, strings.ReplaceAll(err.Error(), "\n", "\n\t"))
		return 0
	}
	fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
	return 1
}
