// Package maps replaces Go's in rewritten programs: iteration has a fixed order.
package maps

import (
	"iter"
	std "maps"

	"github.com/puregpu/puregpu/internal/explore"
)

func Keys[M ~map[K]V, K comparable, V any](m M) iter.Seq[K]    { return explore.Keys(m) }
func All[M ~map[K]V, K comparable, V any](m M) iter.Seq2[K, V] { return explore.Pairs(m) }
func Clone[M ~map[K]V, K comparable, V any](m M) M             { return std.Clone(m) }
func Values[M ~map[K]V, K comparable, V any](m M) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range explore.Pairs(m) {
			if !yield(v) {
				return
			}
		}
	}
}

func Copy[M1, M2 ~map[K]V, K comparable, V any](to M1, from M2) { std.Copy(to, from) }

func Equal[M1, M2 ~map[K]V, K, V comparable](a M1, b M2) bool { return std.Equal(a, b) }
