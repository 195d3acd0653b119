package browsertest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	_ "image/png"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/puregpu/puregpu/internal/traceformat"
)

var (
	shots = flag.String("shots", "", "write screenshots into this `folder`")
	extra = flag.String("open", "", "open the pages of the traces that match this `pattern`, too")
)

// A session is a browser with the errors of its pages.
type session struct {
	ctx context.Context
	t   *testing.T

	mu       sync.Mutex
	problems []string
	requests []string
}

// build builds gputrace, and writes the traces of its tests' scenarios to a folder.
func build(t *testing.T) (gputrace, folder string) {
	t.Helper()
	folder = t.TempDir()
	gputrace = filepath.Join(folder, "gputrace")
	for _, args := range [][]string{
		{"build", "-o", gputrace, "."},
		{"test", "-count=1", "-run", "^TestDuration$", ".", "-traces", folder},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %q: %v\n%s", args, err, out)
		}
	}
	return gputrace, folder
}

func browser(t *testing.T) *session {
	t.Helper()
	var path string
	for _, name := range []string{os.Getenv("PUREGPU_TEST_BROWSER"), "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if p, err := exec.LookPath(name); err == nil && name != "" {
			path = p
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium: install it, or name it in PUREGPU_TEST_BROWSER")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1440, 900), chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancelAlloc)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	ctx, cancelTime := context.WithTimeout(ctx, 20*time.Minute)
	t.Cleanup(cancelTime)
	s := &session{ctx: ctx, t: t}
	if err := chromedp.Listen(ctx, func(ev any) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			s.problems = append(s.problems, fmt.Sprintf("%s %s", ev.ExceptionDetails.Text, ev.ExceptionDetails.Exception.Description))
		case *runtime.EventConsoleAPICalled:
			s.problems = append(s.problems, fmt.Sprintf("console.%s %s", ev.Type, ev.Args[0].Value))
		case *log.EventEntryAdded:
			s.problems = append(s.problems, ev.Entry.Text)
		case *network.EventRequestWillBeSent:
			s.requests = append(s.requests, ev.Request.URL)
		}
	}); err != nil {
		t.Fatal(err)
	}
	call(s, log.Enable, cdp.Empty{})
	call(s, network.Enable, network.EnableParams{})
	s.media("light")
	return s
}

func (s *session) run(actions ...chromedp.Action[chromedp.Void]) {
	s.t.Helper()
	if err := chromedp.Do(s.ctx, actions...); err != nil {
		s.t.Fatal(err)
	}
}

func call[P, R any](s *session, cmd cdp.Command[P, R], params P) {
	s.t.Helper()
	if _, err := chromedp.Call(s.ctx, cmd, params); err != nil {
		s.t.Fatal(err)
	}
}

// open makes the page of a trace, and opens it from its file.
func (s *session) open(gputrace, trace string) {
	s.t.Helper()
	page := filepath.Join(s.t.TempDir(), strings.TrimSuffix(filepath.Base(trace), ".json")+".html")
	if out, err := exec.Command(gputrace, "-html", page, trace).CombinedOutput(); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	s.run(chromedp.Navigate((&url.URL{Scheme: "file", Path: page}).String()))
	// The promise returns the viewer.
	value[bool](s, `gputrace.then(v => { window.viewer = v; return true; })`)
}

// value evaluates an expression. If the result is a promise, value waits for the promised value.
func value[T any](s *session, js string) T {
	s.t.Helper()
	v, err := chromedp.Run(s.ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		s.t.Fatalf("%s: %v", js, err)
	}
	return v
}

// settle draws the next frame at once. One frame is enough, because media turns animations off.
func (s *session) settle() {
	s.t.Helper()
	value[bool](s, `(viewer.draw(), true)`)
}

// media sets the page user's preferences: light or dark, and no animations.
func (s *session) media(scheme string) {
	s.t.Helper()
	call(s, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

func (s *session) key(keys string, modifiers ...chromedp.KeyOption) {
	s.t.Helper()
	s.run(chromedp.KeyEvent(keys, modifiers...))
	s.settle()
}

// seek focuses the field by its key, and types. It removes the key's own character, which a real
// keyboard would not send after the page handled the key.
func (s *session) seek(text string) {
	s.t.Helper()
	s.key("/")
	if !value[bool](s, `document.activeElement.id === "query" && (document.getElementById("query").value = "", true)`) {
		s.t.Fatal("/ does not lead to the field")
	}
	s.run(chromedp.KeyEvent(text))
}

func (s *session) shot(name string) image.Image {
	s.t.Helper()
	png, err := chromedp.Run(s.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		s.t.Fatal(err)
	}
	if *shots != "" {
		if err := os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	img, _, err := image.Decode(bytes.NewReader(png))
	if err != nil {
		s.t.Fatal(err)
	}
	return img
}

// clean fails if the page logged an error or requested anything but itself.
func (s *session) clean() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.problems {
		s.t.Errorf("the page says: %s", p)
	}
	for _, r := range s.requests {
		if !strings.HasPrefix(r, "file:") && !strings.HasPrefix(r, "data:") {
			s.t.Errorf("the page asked for %s", r)
		}
	}
	s.problems, s.requests = nil, nil
}

// events reads a trace.
func events(t *testing.T, name string) (list []traceformat.Event) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := traceformat.NewReader(f)
	for {
		var e traceformat.Event
		err := r.Next(&e)
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
}

// at returns the position of a slice on the page.
type at struct {
	X, Y, Begin, End float64
	Name             string
	Kind, Row        int
}

const atPage = `(i => { const a = viewer.at(i), r = document.getElementById("timeline").getBoundingClientRect(); return {...a, x: a.x + r.left, y: a.y + r.top}; })`

// A program is an example. The function did checks how many operations of each name the program's
// page shows.
type program struct {
	name string
	args []string
	did  func(n map[string]int) string
}

var programs = []program{
	{"mlp", nil, func(n map[string]int) string {
		// mlp uploads 8 inputs and the weights. It allocates an input and an output each time, and
		// the weights.
		want := map[string]int{"execute": 8, "download": 8, "upload": 9, "alloc": 17, "free": 17}
		if !maps.Equal(n, want) {
			return fmt.Sprintf("want %v", want)
		}
		return ""
	}},
	{"allreduce", nil, func(n map[string]int) string {
		// A rank downloads the steps of all ranks, the weights to begin with, and the weights after each
		// 10 steps.
		const ranks, steps, downloads = 4, 30, 2 + 3
		for name, want := range map[string]int{"all-reduce": ranks * steps, "gradient": ranks * steps, "residual": ranks * steps, "step": ranks * steps, "download": ranks * downloads} {
			if n[name] != want {
				return fmt.Sprintf("want %d of %s", want, name)
			}
		}
		if n["alloc"] != n["free"] {
			return "want as many frees as allocations"
		}
		return ""
	}},
	// The server answers 200 requests in batches; half of the requests may be cancelled at any
	// time. Its network has 3 layers with two arrays each.
	{"serve", []string{"-selftest"}, func(n map[string]int) string {
		if n["download"] == 0 || n["download"] > 200 || n["dense"] != 3*n["download"] || n["upload"] != 6+n["download"] || n["alloc"] != n["free"] {
			return "want 3 layers and an input for each of at most 200 answers"
		}
		return ""
	}},
}

// run runs the examples on simulated devices and writes their traces into a folder.
func run(t *testing.T, folder string) {
	t.Helper()
	for _, p := range programs {
		name := filepath.Join(folder, p.name)
		build := exec.Command("go", "build", "-o", name, "./runtime/examples/"+p.name)
		build.Dir = "../../.."
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", p.name, err, out)
		}
		cmd := exec.CommandContext(t.Context(), name, p.args...)
		cmd.Env = append(os.Environ(), "PUREGPU_DRIVER=sim", "PUREGPU_TRACE="+name+".json")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", p.name, err, out)
		}
	}
}

// TestPagesShowWhatTheTraceHas opens the pages of the scenarios and of examples. It compares
// numbers, order and arrows with the events, and the examples' numbers with their code.
func TestPagesShowWhatTheTraceHas(t *testing.T) {
	gputrace, folder := build(t)
	run(t, folder)
	s := browser(t)
	traces := []string{"steps", "ranks", "trouble", "nothing", "without-device-times", "server-3000"}
	scenarios := len(traces)
	for _, p := range programs {
		traces = append(traces, p.name)
	}
	for i := range traces {
		traces[i] = filepath.Join(folder, traces[i]+".json")
	}
	own := len(traces)
	if more, err := filepath.Glob(*extra); err != nil || *extra != "" && len(more) == 0 {
		t.Fatalf("no trace is %q, %v", *extra, err)
	} else {
		traces = append(traces, more...)
	}
	for i, trace := range traces {
		name := strings.TrimSuffix(filepath.Base(trace), ".json")
		t.Run(name, func(t *testing.T) {
			s.t = t
			list := events(t, trace)
			s.open(gputrace, trace)
			count := func(phase traceformat.Phase, cat string) (n int) {
				for _, e := range list {
					if e.Phase == phase && e.Cat == cat && e.Name != traceformat.NameParked {
						n++
					}
				}
				return n
			}
			for kind, want := range []int{
				count(traceformat.Complete, traceformat.CatDevice), count(traceformat.Complete, traceformat.CatCommand), count(traceformat.Complete, traceformat.CatCall),
				count(traceformat.Complete, traceformat.CatWait), count(traceformat.AsyncBegin, traceformat.CatSubmission),
			} {
				if got := value[int](s, fmt.Sprintf("viewer.ofKind(%d)", kind)); got != want {
					t.Errorf("kind %d: the page has %d slices, the trace %d", kind, got, want)
				}
			}
			// Every arrow of the trace is on the page. The page also has arrows of operations
			// without device times. The program serve has such operations, because work of
			// cancelled requests may fail.
			flows := count(traceformat.FlowBegin, traceformat.CatSignal)
			if got := value[int](s, "viewer.arrows"); got < flows || i < own && name != "trouble" && name != "without-device-times" && name != "serve" && got != flows {
				t.Errorf("the page has %d arrows, the trace %d", got, flows)
			}
			// Compare the order of the operations of each stream.
			type key struct{ pid, tid int64 }
			order := map[key][]string{}
			sorted := slices.Clone(list)
			slices.SortStableFunc(sorted, func(a, b traceformat.Event) int { return int(a.Time - b.Time) })
			for _, e := range sorted {
				if e.Phase == traceformat.Complete && e.Cat == traceformat.CatDevice {
					k := key{e.PID, e.TID}
					order[k] = append(order[k], fmt.Sprintf("%s at %d", e.Name, e.Time))
				}
			}
			var want []string
			for _, v := range order {
				want = append(want, strings.Join(v, "\n"))
			}
			got := value[[]string](s, `(() => { const rows = new Map(), d = viewer.data;
				for (let i = 0; i < viewer.slices; i++) { const a = viewer.at(i); if (a.kind === 0) rows.set(a.row, [...(rows.get(a.row) ?? []), a.name + " at " + (a.begin + d.begin)]); }
				return [...rows.values()].map(v => v.join("\n")); })()`)
			slices.Sort(want)
			slices.Sort(got)
			if !reflect.DeepEqual(got, want) && len(want) > 0 {
				t.Errorf("streams show\n%.2000s\nwant\n%.2000s", strings.Join(got, "\n\n"), strings.Join(want, "\n\n"))
			}
			if i >= scenarios && i < own {
				n := value[map[string]int](s, `(() => { const n = {}; for (let i = 0; i < viewer.slices; i++) { const a = viewer.at(i); if (a.kind === 0) n[a.name] = (n[a.name] ?? 0) + 1; } return n; })()`)
				if wrong := programs[i-scenarios].did(n); wrong != "" {
					t.Errorf("the page shows %v: %s", n, wrong)
				}
			}
			// The middle of a wide slice has the colour of the slice, not of the background.
			img := s.shot("page-" + name)
			if n := value[int](s, "viewer.slices"); n > 0 {
				i := value[int](s, `(() => { let best = 0, len = -1; for (let i = 0; i < viewer.slices; i++) { const a = viewer.at(i); if (a.kind === 0 && a.end - a.begin > len && a.y > 0 && a.y < 300) best = i, len = a.end - a.begin; } return best; })()`)
				a := value[at](s, fmt.Sprintf("%s(%d)", atPage, i))
				if a.Kind == 0 && sameColor(img.At(int(a.X), int(a.Y)-8), img.At(int(a.X), int(a.Y)+200)) && sameColor(img.At(int(a.X), int(a.Y)-8), color.White) {
					t.Errorf("%q is not painted at %.0f, %.0f", a.Name, a.X, a.Y)
				}
			}
			s.clean()
		})
	}
}

func sameColor(a, b color.Color) bool {
	r1, g1, b1, _ := a.RGBA()
	r2, g2, b2, _ := b.RGBA()
	return r1 == r2 && g1 == g2 && b1 == b2
}

// TestTimelineByMouseAndKeys zooms, moves, selects, follows arrows, and seeks.
func TestTimelineByMouseAndKeys(t *testing.T) {
	gputrace, folder := build(t)
	s := browser(t)
	s.open(gputrace, filepath.Join(folder, "ranks.json"))
	view := func() (a, b float64) {
		v := value[[]float64](s, "viewer.view()")
		return v[0], v[1]
	}
	whole0, whole1 := view()

	// Zoom in by a key, and out by 0.
	s.key("w")
	a, b := view()
	if !(b-a < 0.7*(whole1-whole0)) {
		t.Errorf("W zoomed from %v to %v", whole1-whole0, b-a)
	}
	s.key("d")
	if a2, b2 := view(); !(a2 > a && near(b2-a2, b-a)) {
		t.Errorf("D moved from %v, %v to %v, %v", a, b, a2, b2)
	}
	s.key("s")
	s.key("0")
	if a, b := view(); !near(a, whole0) || !near(b, whole1) {
		t.Errorf("0 shows %v to %v of %v to %v", a, b, whole0, whole1)
	}

	// Zooming by the wheel keeps the point under the mouse in place. Without Ctrl the wheel
	// scrolls.
	target := value[at](s, atPage+`([...Array(viewer.slices).keys()].filter(i => viewer.at(i).kind === 0)[1])`)
	for range 3 {
		call(s, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseWheel, X: target.X, Y: target.Y, DeltaX: 1e-9, DeltaY: -150, Modifiers: 2})
	}
	s.settle()
	a, b = view()
	if !(b-a < 0.6*(whole1-whole0)) {
		t.Errorf("the wheel zoomed to %v of %v", b-a, whole1-whole0)
	}
	after := value[at](s, fmt.Sprintf(`%s([...Array(viewer.slices).keys()].filter(i => viewer.at(i).kind === 0)[1])`, atPage))
	if d := after.X - target.X; d > 3 || d < -3 {
		t.Errorf("what was under the mouse moved by %v pixels", d)
	}
	// Drag the timeline.
	s.run(chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, 800, 400, chromedp.ButtonLeft), chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 700, 400, chromedp.ButtonLeft),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 600, 400, chromedp.ButtonLeft), chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, 600, 400, chromedp.ButtonLeft))
	s.settle()
	if a2, b2 := view(); !(a2 > a && near(b2-a2, b-a)) {
		t.Errorf("dragging moved from %v, %v to %v, %v", a, b, a2, b2)
	}
	s.key("0")

	// A click selects, and shows details.
	click := func(which string) at {
		p := value[at](s, fmt.Sprintf(`%s([...Array(viewer.slices).keys()].filter(i => %s)[0])`, atPage, which))
		s.run(chromedp.MouseClickXY(p.X, p.Y))
		s.settle()
		return p
	}
	type selection struct {
		Index           int
		Name            string
		Begin, End      float64
		Causes, Effects []int
	}
	allreduce := click(`viewer.at(i).kind === 0 && viewer.at(i).name === "all-reduce"`)
	sel := value[*selection](s, "viewer.selected()")
	if sel == nil || sel.Name != "all-reduce" || !near(sel.Begin, allreduce.Begin) {
		t.Fatalf("a click on %+v selected %+v", allreduce, sel)
	}
	if len(sel.Causes) != 1 || len(sel.Effects) != 1 {
		t.Errorf("the first all-reduce waited for %v and released %v", sel.Causes, sel.Effects)
	}
	text := value[string](s, `document.getElementById("details").innerText`)
	for _, want := range []string{"all-reduce", "67,108,864", "grads", "rank 0 = 2", "rank 0 ≥ 1", "step", "GPU 0", "0 of 2"} {
		if !strings.Contains(text, want) {
			t.Errorf("the details lack %q:\n%s", want, text)
		}
	}
	s.shot("selected")

	// Go back to the last wait, and on again.
	s.key("[")
	if cause := value[*selection](s, "viewer.selected()"); cause == nil || cause.Name != "step" || !slices.Contains(sel.Causes, cause.Index) || !slices.Contains(cause.Effects, sel.Index) {
		t.Errorf("[ led from %+v to %+v", sel, cause)
	}
	s.key("]")
	if v := value[*selection](s, "viewer.selected()"); v == nil || v.Name != "all-reduce" {
		t.Errorf("] led to %+v", v)
	}
	// Go along the row and to another row, and zoom to the selected slice.
	before := value[*selection](s, "viewer.selected()")
	s.key(kb.ArrowRight)
	right := value[*selection](s, "viewer.selected()")
	if right == nil || right.Begin <= before.Begin {
		t.Errorf("→ led from %+v to %+v", before, right)
	}
	s.key(kb.ArrowUp)
	if up := value[*selection](s, "viewer.selected()"); up == nil || up.Index == right.Index {
		t.Errorf("↑ led from %+v to %+v", right, up)
	}
	s.key("f")
	a, b = view()
	if cur := value[*selection](s, "viewer.selected()"); !(a < cur.Begin && cur.End < b && cur.End-cur.Begin > 0.2*(b-a)) {
		t.Errorf("F shows %v to %v for %+v", a, b, cur)
	}
	if said := value[string](s, `document.getElementById("said").textContent`); !strings.Contains(said, "GPU") || !strings.Contains(said, "µs, at ") {
		t.Errorf("a screen reader hears %q", said)
	}
	s.key(kb.Escape)
	if v := value[*selection](s, "viewer.selected()"); v != nil {
		t.Errorf("Esc left %+v selected", v)
	}

	// Arrows are drawn until they are switched off.
	s.key("0")
	if n := value[int](s, "viewer.arrowsDrawn()"); n == 0 {
		t.Error("no arrow is drawn")
	}
	s.key("x")
	if n := value[int](s, "viewer.arrowsDrawn()"); n != 0 {
		t.Errorf("%d arrows are drawn though they are off", n)
	}
	s.key("x")
	s.key("c")
	if p := value[string](s, `document.getElementById("critical").getAttribute("aria-pressed")`); p != "true" {
		t.Errorf("C: pressed is %s", p)
	}
	s.shot("critical")
	s.key("c")

	// Seek operations by name.
	s.seek("backward")
	wait(s, `viewer.matches() === 8`)
	s.key(kb.Enter)
	found := value[*selection](s, "viewer.selected()")
	if found == nil || found.Name != "backward" {
		t.Errorf("Enter led to %+v", found)
	}
	if f := value[string](s, `document.getElementById("found").textContent`); !strings.HasSuffix(f, "/ 8") {
		t.Errorf("found: %q", f)
	}
	s.shot("found")
	s.key(kb.Enter)
	if next := value[*selection](s, "viewer.selected()"); next == nil || next.Begin < found.Begin || next.Index == found.Index {
		t.Errorf("Enter led from %+v to %+v", found, next)
	}
	s.key(kb.Escape)
	if n := value[int](s, "viewer.matches()"); n != 0 {
		t.Errorf("%d matches after Esc", n)
	}
	s.seek("#3")
	wait(s, `viewer.matches() === 1`)
	s.key(kb.Escape)
	s.seek("no such thing")
	wait(s, `document.getElementById("found").textContent === "none"`)
	s.key(kb.Escape)

	// The help lists keys, and the dialog closes.
	s.key("?")
	if !value[bool](s, `document.getElementById("keys").open`) {
		t.Error("? shows no keys")
	}
	s.shot("keys")
	s.key(kb.Escape)
	if value[bool](s, `document.getElementById("keys").open`) {
		t.Error("Esc does not close the keys")
	}

	// A process collapses and expands.
	tracks := value[[]string](s, "viewer.tracks()")
	value[bool](s, `([...document.querySelectorAll("#labels button")].find(b => b.textContent.includes("GPU 0")).click(), true)`)
	if n := len(value[[]string](s, "viewer.tracks()")); n >= len(tracks) {
		t.Errorf("%d tracks of %d are left", n, len(tracks))
	}
	value[bool](s, `([...document.querySelectorAll("#labels button")].find(b => b.textContent.includes("GPU 0")).click(), true)`)
	if again := value[[]string](s, "viewer.tracks()"); !reflect.DeepEqual(again, tracks) {
		t.Errorf("tracks %q, before %q", again, tracks)
	}
	// Every control has a name, and Tab reaches it.
	if unnamed := value[int](s, `[...document.querySelectorAll("button, input, [tabindex]")].filter(e => e.tabIndex >= 0 && !(e.getAttribute("aria-label") || e.textContent.trim() || e.title)).length`); unnamed != 0 {
		t.Errorf("%d controls have no name", unnamed)
	}
	value[bool](s, `(document.activeElement.blur(), true)`)
	reached := false
	for range 25 {
		s.run(chromedp.KeyEvent(kb.Tab))
		reached = reached || value[string](s, "document.activeElement.id") == "timeline"
	}
	if !reached {
		t.Error("Tab does not reach the timeline")
	}
	s.clean()
}

// near reports whether two moments differ by rounding only.
func near(a, b float64) bool {
	d := a - b
	return d < 2 && d > -2
}

// wait waits until a condition holds.
func wait(s *session, condition string) {
	s.t.Helper()
	if !value[bool](s, `new Promise(done => {
		let left = 600;
		const look = () => (`+condition+`) ? done(true) : left-- ? setTimeout(look, 50) : done(false);
		look();
	})`) {
		s.t.Fatalf("it did not come to be that %s; the focus is on %q, what is sought %q, found %q", condition, value[string](s, "document.activeElement.id"),
			value[string](s, `document.getElementById("query").value`), value[string](s, `document.getElementById("found").textContent + " of " + viewer.matches()`))
	}
	s.settle()
}

// TestLightAndDark checks that the page follows the system, and the switch.
func TestLightAndDark(t *testing.T) {
	gputrace, folder := build(t)
	s := browser(t)
	ground := func() string { return value[string](s, "getComputedStyle(document.body).backgroundColor") }
	s.media("light")
	s.open(gputrace, filepath.Join(folder, "steps.json"))
	light := ground()
	s.shot("light")
	s.media("dark")
	s.settle()
	dark := ground()
	img := s.shot("dark")
	if light == dark {
		t.Errorf("light and dark are both %s", light)
	}
	if r, _, _, _ := img.At(700, 550).RGBA(); r > 0x5000 {
		t.Error("the timeline is not dark")
	}
	s.key("t")
	if g := ground(); g != light {
		t.Errorf("the switch gave %s, not %s", g, light)
	}
	value[bool](s, `(document.getElementById("theme").click(), true)`)
	if g := ground(); g != dark {
		t.Errorf("the switch gave %s, not %s", g, dark)
	}
	s.clean()
}

// TestAHundredThousandSubmissions checks that a page of that size opens, and is drawn, sought and
// zoomed like a small one.
func TestAHundredThousandSubmissions(t *testing.T) {
	gputrace, folder := build(t)
	s := browser(t)
	began := time.Now()
	s.open(gputrace, filepath.Join(folder, "server-100000.json"))
	t.Logf("%d slices: %v to summarize, write, open and draw", value[int](s, "viewer.slices"), time.Since(began))
	frames := value[float64](s, `(() => { const t = performance.now(); for (let i = 0; i < 20; i++) viewer.draw(); return (performance.now() - t) / 20; })()`)
	t.Logf("a frame of all of it: %.1f ms", frames)
	s.shot("large")
	for range 8 {
		s.key("w")
	}
	t.Logf("a frame after zooming in: %.1f ms", value[float64](s, `(() => { const t = performance.now(); for (let i = 0; i < 20; i++) viewer.draw(); return (performance.now() - t) / 20; })()`))
	s.shot("large-zoomed")
	s.seek("softmax")
	wait(s, `viewer.matches() > 1000`)
	s.key(kb.Enter)
	if name := value[string](s, "viewer.selected().name"); name != "softmax" {
		t.Errorf("found %q", name)
	}
	s.shot("large-found")
	s.clean()
}
