//go:build !unix

package regular

// Nonblock is a flag of [os.OpenFile], and nothing where opening never waits.
const Nonblock = 0
