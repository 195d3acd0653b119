// Package rand stands in for Go's package math/rand/v2 in rewritten programs. Its functions get
// random numbers from the run.
package rand

import (
	std "math/rand/v2"

	"github.com/puregpu/puregpu/internal/explore"
)

type (
	Rand   = std.Rand
	Source = std.Source
	PCG    = std.PCG
)

func New(s Source) *Rand              { return std.New(s) }
func NewPCG(a, b uint64) *PCG         { return std.NewPCG(a, b) }
func Uint64() uint64                  { return explore.Noise() }
func Uint32() uint32                  { return uint32(explore.Noise()) }
func IntN(n int) int                  { return int(explore.Noise() >> 1 % uint64(n)) }
func N[I int | int64 | uint64](n I) I { return I(explore.Noise() >> 1 % uint64(n)) }
