package main

var lib library

// dlLoops run a case n times through package dl.
var dlLoops = map[string]func(n int) error{
	"0": func(n int) error {
		for range n {
			if err := lib.F0(); err != nil {
				return err
			}
		}
		return nil
	},
	"1": func(n int) error {
		for i := range n {
			if err := lib.F1(uint64(i)); err != nil {
				return err
			}
		}
		return nil
	},
	"2": func(n int) error {
		for i := range n {
			if err := lib.F2(uint64(i), 2); err != nil {
				return err
			}
		}
		return nil
	},
	"3": func(n int) error {
		for i := range n {
			if err := lib.F3(uint64(i), 2, 3); err != nil {
				return err
			}
		}
		return nil
	},
	"4": func(n int) error {
		for i := range n {
			if err := lib.F4(uint64(i), 2, 3, 4); err != nil {
				return err
			}
		}
		return nil
	},
	"6": func(n int) error {
		for i := range n {
			if err := lib.F6(uint64(i), 2, 3, 4, 5, 6); err != nil {
				return err
			}
		}
		return nil
	},
	"11": func(n int) error {
		for i := range n {
			if err := lib.F11(uint64(i), 2, 3, 4, 5, 6, 7, 8, 9, 10, 11); err != nil {
				return err
			}
		}
		return nil
	},
	"16": func(n int) error {
		for i := range n {
			if err := lib.F16(uint64(i), 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16); err != nil {
				return err
			}
		}
		return nil
	},
	"2+out": func(n int) error {
		for i := range n {
			if out, err := lib.Out(uint64(i), 2); err != nil || out != uint64(i)+2 {
				return wrong(out, err)
			}
		}
		return nil
	},
}
