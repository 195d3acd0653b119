package extract
import ("testing";"os";"fmt")
func TestZZ(t *testing.T) {
	b, _ := os.ReadFile("/tmp/fr_t/x.h")
	h, err := parseText(string(b))
	fmt.Println(err)
	if h == nil { return }
	for _, s := range h.table.Structs { fmt.Printf("%+v\n", s) }
	for _, s := range h.table.Enums { fmt.Printf("%+v\n", s) }
	for _, s := range h.table.Constants { fmt.Printf("%+v\n", s) }
	for _, s := range h.table.Aliases { fmt.Printf("%+v\n", s) }
	for _, s := range h.table.Scalars { fmt.Printf("%+v\n", s) }
	for _, s := range h.table.Handles { fmt.Printf("%+v\n", s) }
	for _, s := range h.table.Callbacks { fmt.Printf("%+v\n", s) }
	for _, s := range h.funcs { fmt.Printf("%+v\n", s.Function) }
}
