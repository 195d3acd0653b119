//go:build race

package dl

const race = true
