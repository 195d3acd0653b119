package model

import (
	"maps"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/kernels"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/peer"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/persist"
)

// Sim returns the kernels that a simulated GPU needs, for simdriver.Config.
func Sim() map[string]simdriver.Kernel {
	all := kernels.Sim()
	maps.Copy(all, peer.Sim())
	maps.Copy(all, persist.SimPersist(persist.Twins{}))
	return all
}
