package main

import "io"

func writePage(w io.Writer, t *trace, s *summary) error { return nil }
