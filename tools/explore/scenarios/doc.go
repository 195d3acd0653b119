// Package scenarios has small concurrent uses of package gpu on simulated devices. tools/explore
// runs them in many orders. Each scenario checks what must hold in every order: every call returns,
// memory is as if the operations ran one after the other, and nothing leaks.
//
// As ordinary tests they run once each.
package scenarios
