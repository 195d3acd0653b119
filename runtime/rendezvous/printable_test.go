package rendezvous

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// TestErrorsPrintable uses a folder and an address with terminal escapes and a forged line. No
// error may contain them unquoted.
func TestErrorsPrintable(t *testing.T) {
	const bad, shown = "a\x1bc\nb", `a\x1bc\nb`
	place := Place{Rank: 0, Count: 2}
	for name, share := range map[string]func() ([]byte, error){
		"File": func() ([]byte, error) {
			return File{Path: filepath.Join(t.TempDir(), bad, "\x00"), At: place}.Share(context.Background(), "x", make([]byte, 128))
		},
		"TCP": func() ([]byte, error) {
			return TCP{Address: bad, At: place}.Share(context.Background(), "x", make([]byte, 128))
		},
	} {
		_, err := share()
		if err == nil || strings.ContainsAny(err.Error(), "\x1b\n") || !strings.Contains(err.Error(), shown) {
			t.Errorf("%s: %q", name, err)
		}
	}
}
