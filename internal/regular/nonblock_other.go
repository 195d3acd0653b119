//go:build !unix

package regular

// Nonblock is a flag of [os.OpenFile]. It is 0 on this system, where opening never waits.
const Nonblock = 0
