// Hello prints hello. Command size compares the other program with it.
package main

import "os"

func main() { os.Stdout.WriteString("hello\n") }
