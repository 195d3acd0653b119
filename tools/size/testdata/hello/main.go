// Hello is what the other program's size and start are compared with.
package main

import "os"

func main() { os.Stdout.WriteString("hello\n") }
