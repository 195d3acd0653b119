// Hello prints hello. Command size compares the other program's size and start with it.
package main

import "os"

func main() { os.Stdout.WriteString("hello\n") }
