// Package textbook has the classic faults of books on concurrency, and for each a correct twin.
// Tests of tools/explore must find every fault, and none in the twins.
package textbook
