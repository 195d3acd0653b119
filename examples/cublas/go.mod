module github.com/puregpu/puregpu/examples/cublas

go 1.26.0

require github.com/puregpu/puregpu v0.0.0

require github.com/ebitengine/purego v0.11.3 // indirect

replace github.com/puregpu/puregpu => ../..
