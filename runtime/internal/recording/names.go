package recording

import (
	"fmt"
	"strconv"

	"github.com/puregpu/puregpu/runtime/driver"
)

// names has the names of commands and kernels for errors and traces.
type names struct {
	labels  map[Command]string         // the labels that the program has given
	kernels map[driver.Function]string // empty unless the tracer describes recordings
}

// setLabel sets the label of a command.
func (n *names) setLabel(at Command, label string) {
	if n.labels == nil {
		n.labels = map[Command]string{}
	}
	n.labels[at] = label
}

// nameKernel remembers a kernel's name.
func (n *names) nameKernel(fn driver.Function, name string) {
	if n.kernels == nil {
		n.kernels = map[driver.Function]string{}
	}
	n.kernels[fn] = name
}

// of returns a command's name for messages: its number and its label.
func (n *names) of(i int) string {
	if label := n.labels[Command(i)]; label != "" {
		return fmt.Sprintf("command %d (%q)", i, label)
	}
	return "command " + strconv.Itoa(i)
}

// nest adds the names of a nested recording. first is the new number of that recording's command 0.
func (n *names) nest(child *names, first Command) {
	for fn, name := range child.kernels {
		n.nameKernel(fn, name)
	}
	for at, label := range child.labels {
		n.setLabel(first+at, label)
	}
}
