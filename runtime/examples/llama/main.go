// Llama runs a Llama-family language model on GPUs, without cgo. It reads the model from a folder
// with config.json, safetensors and tokenizer.json, as Hugging Face has them.
//
//	llama generate -model folder "Once upon a time"
//	llama serve -model folder -addr localhost:8080
//	llama bench -model folder
//	llama load -model folder -clients 64 -duration 1m
//
// Serve answers OpenAI's completions:
//
//	curl localhost:8080/v1/completions -d '{"prompt": "Once upon", "max_tokens": 50, "stream": true}'
//
// Bench measures the time to the first token, and the time of a step for several numbers of
// sequences. Load sends the requests of many clients to a server in its own process, or with -url
// to a running one, which must have been started with -invariant. Load checks that each answer is
// the same as without load.
//
// With -sim the GPUs are simulated, and without -model the model is a tiny random one. With -tp 2
// two GPUs of the process share the model's work. A kernel that writes to the memory of both GPUs
// adds their products. With -reduce collective, or if the GPUs cannot reach each other's memory,
// NCCL adds them.
//
// Started by torchrun, mpirun or srun, or with -rank and -ranks, the program is one process of
// several, with one GPU each:
//
//	llama serve -model folder -rank 0 -ranks 2 -rendezvous node1:4000
//	llama serve -model folder -rank 1 -ranks 2 -rendezvous node1:4000
//
// Rank 0 runs the command, and the others work for it until it ends.
//
// The packages below internal have one subject each: checkpoint and tokenizer read a model, kernels
// and model compute with it, engine decides which requests take part in each step, and server
// speaks HTTP.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

// started is about when the process started.
var started = time.Now()

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr, nil)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "llama:", err)
		os.Exit(1)
	}
}

// errUsage says that the arguments are wrong. run has printed why, or how to use the program.
var errUsage = errors.New("wrong arguments")

// A command is one of the program's commands. run is called after the flags are parsed.
type command struct {
	name, about string
	flags       func(*program)
	run         func(*program, context.Context) error
}

var commands = []command{
	{"serve", "answer HTTP requests", (*program).serveFlags, (*program).serve},
	{"generate", "continue a text", (*program).generateFlags, (*program).generate},
	{"bench", "measure the time of steps", (*program).benchFlags, (*program).bench},
	{"load", "load a server and check its answers", (*program).loadFlags, (*program).load},
}

// run runs the program with arguments. With -sim, run uses the driver in the parameter simulated,
// or new simulated GPUs if simulated is nil.
func run(ctx context.Context, args []string, out, errors io.Writer, simulated driver.Driver) error {
	if len(args) > 0 {
		for _, c := range commands {
			if c.name == args[0] {
				p := &program{out: out, err: errors, simulated: simulated, FlagSet: flag.NewFlagSet("llama "+c.name, flag.ContinueOnError)}
				p.SetOutput(errors)
				p.modelFlags()
				c.flags(p)
				if err := p.Parse(args[1:]); err == flag.ErrHelp {
					return err
				} else if err != nil {
					return errUsage // Parse has printed the error
				}
				p.log = slog.New(slog.NewTextHandler(errors, nil))
				return c.run(p, ctx)
			}
		}
	}
	fmt.Fprintln(errors, "usage: llama command [flags]\n\nThe commands are (see llama command -h for flags):")
	for _, c := range commands {
		fmt.Fprintf(errors, "\t%-9s %s\n", c.name, c.about)
	}
	if len(args) == 1 && slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		return flag.ErrHelp
	}
	return errUsage
}
