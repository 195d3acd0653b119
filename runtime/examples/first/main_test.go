package main

import "os"

func Example() {
	os.Setenv("PUREGPU_DRIVER", "sim")
	main()
	// Output: [12 24 36 48] on Simulated GPU 0
}
