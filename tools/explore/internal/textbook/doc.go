// Package textbook has the faults that books on concurrency begin with, and for each a twin that is right. Tests of tools/explore have it find the former, and nothing in
// the latter.
package textbook
