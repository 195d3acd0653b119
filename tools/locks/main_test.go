package main

import (
	"go/format"
	"slices"
	"strings"
	"testing"
)

// TestJudge checks the verdicts on orders of mutexes.
func TestJudge(t *testing.T) {
	for name, x := range map[string]struct {
		orders []string
		depth  int
		want   string // in the error; "" for no error
	}{
		"a leaf under two others":                      {[]string{"a b", "c b"}, 2, ""},
		"both orders":                                  {[]string{"a b", "b a"}, 0, "locked in a cycle: a > b > a"},
		"a circle of three":                            {[]string{"a b", "b c", "c x a"}, 0, "locked in a cycle: a > b > c > a"},
		"the other way round without waiting":          {[]string{"a b", "b [a]"}, 0, ""},
		"what was not waited for is held all the same": {[]string{"[a] b", "b a"}, 0, "locked in a cycle: a > b > a"},
		"two of one name":                              {[]string{"a a"}, 0, "holds a twice"},
		"a nested command buffer":                      {[]string{"recording.Recording.mu recording.Recording.mu"}, 0, ""},
		"a nested command buffer, by TryLock":          {[]string{"recording.Recording.mu [recording.Recording.mu]"}, 0, ""},
		"three of the scheduler":                       {[]string{"engine.Timeline.mu engine.ring.mu engine.Device.mu"}, 2, "holds 3 mutexes of the scheduler: engine.Timeline.mu engine.ring.mu engine.Device.mu"},
		"three of the scheduler, without a limit":      {[]string{"engine.Timeline.mu engine.ring.mu engine.Device.mu"}, 0, ""},
		"two of the scheduler under another":           {[]string{"gpu.Stream.mu engine.Timeline.mu engine.ring.mu"}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := read(strings.NewReader(strings.Join(x.orders, "\tf < g\n")))
			if err != nil {
				t.Fatal(err)
			}
			err = found.judge(x.depth)
			if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
				t.Errorf("judged %v; want %q", err, x.want)
			}
		})
	}
}

// TestWatch checks that the mutexes of structs are replaced, and that lines and other types stay
// where they are.
func TestWatch(t *testing.T) {
	src := "package p\n\nimport \"sync\"\n\ntype T struct {\n\tmu sync.Mutex // a leaf\n\tin struct{ life sync.RWMutex }\n\tp *sync.Mutex\n}\n"
	out, watched, err := watch("p.go", []byte(src))
	if err != nil || !slices.Equal(watched, []string{"p.T.mu", "p.T.life"}) {
		t.Fatal(watched, err)
	}
	for _, want := range []string{
		"\tmu lockcheck.Mutex[lockcheck_T_mu] // a leaf\n\tin struct{ life lockcheck.RWMutex[lockcheck_T_life] }\n\tp *sync.Mutex\n",
		`func (lockcheck_T_mu) Name() string { return "p.T.mu" }`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it lacks %q:\n%s", want, out)
		}
	}
	if _, err := format.Source(out); err != nil {
		t.Error(err)
	}
	if line := strings.Count(string(out[:strings.Index(string(out), "mu lockcheck")]), "\n"); line != 5 {
		t.Errorf("the field has moved to line %d", line+1)
	}
	if _, watched, err := watch("p.go", []byte("package p\n\ntype T struct{ n int }\n")); watched != nil || err != nil {
		t.Errorf("a file without mutexes: %v, %v", watched, err)
	}
}
