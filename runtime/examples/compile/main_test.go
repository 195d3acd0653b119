package main

import "os"

func Example() {
	os.Setenv("PUREGPU_DRIVER", "sim")
	main()
	// Output:
	// simdriver for sim, from the cache: false
	// [12 24 36 48] [0.5 1 1.5 2] on Simulated GPU 0
}
