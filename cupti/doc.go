// Package cupti binds CUPTI.
package cupti

//go:generate go run github.com/puregpu/puregpu/tools/gen cupti
