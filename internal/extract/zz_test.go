package extract

import (
	"fmt"
	"io/fs"
	"os"
	"testing"
)

func TestZZ(t *testing.T) {
	r := "../../build/reallibs/bind-main/root/usr/include"
	files := Folders{Folder(r), Folder(r + "/x86_64-linux-gnu")}
	s := source{main: os.Getenv("H"), files: files, keep: func(f string) bool { return true }}
	var rc recovery
	for i := 0; i < 30; i++ {
		h, err := parseOnce(s, &rc)
		if err == nil {
			fmt.Println("ok", len(h.funcs), len(h.refused))
			for _, x := range h.refused {
				fmt.Println(x)
			}
			return
		}
		fmt.Println(i, err)
		if !rc.next(s.all(&rc), err) {
			fmt.Println("no")
			return
		}
		fmt.Println("left out", rc.refused[len(rc.refused)-1])
	}
	_ = fs.ValidPath
}
