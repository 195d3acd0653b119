package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"
)

// member names the variable that sets the behaviour of a process in a test's team.
const member = "GPUBENCH_TEST_MEMBER"

// TestMain also runs the processes that tests start.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workerArg {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	if how := os.Getenv(member); how != "" {
		os.Exit(beMember(how))
	}
	os.Exit(m.Run())
}

// beMember is the main function of a process in a test's team. It answers each order with numbers
// from the order, unless how names a fault.
func beMember(how string) int {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var o order
		if err := json.Unmarshal(in.Bytes(), &o); err != nil {
			return 3
		}
		a := answer{P50: float64(o.Bytes), Min: 1, Each: float64(o.Rank)}
		switch how {
		case "noisy":
			fmt.Println("a library says something")
			fmt.Fprintln(os.Stderr, "and more")
		case "lacking":
			a = answer{Missing: "there is no such library"}
		case "failing":
			a = answer{Error: "it does not work"}
		case "garbled":
			fmt.Println(mark + "{")
		case "dying":
			fmt.Fprint(os.Stderr, strings.Repeat("x", 3*tailSize)+"\nout of luck\n")
			return 7
		case "ending":
			return 0
		case "hanging":
			time.Sleep(time.Hour)
		case "odd":
			if o.Do == "last" {
				return 9
			}
		}
		if err := write(os.Stdout, a); err != nil {
			return 4
		}
	}
	if how == "bad end" {
		fmt.Fprintln(os.Stderr, "something was not given back")
		return 5
	}
	return 0
}

func startMembers(t *testing.T, how ...string) *team {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var cmds []*exec.Cmd
	for _, h := range how {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), member+"="+h)
		cmds = append(cmds, cmd)
	}
	return startTeam("members", cmds...)
}

func TestTeam(t *testing.T) {
	team := startMembers(t, "good", "noisy", "good")
	for i := range 3 {
		all, err := team.ask(t.Context(), func(k int) order { return order{Do: "time", Bytes: 100, Rank: 10*i + k} })
		if err != nil {
			t.Fatal(err)
		}
		for k, a := range all {
			if want := (answer{P50: 100, Min: 1, Each: float64(10*i + k)}); !reflect.DeepEqual(a, want) {
				t.Errorf("process %d answers %+v, want %+v", k, a, want)
			}
		}
		if a := slowest(all); a.P50 != 100 || a.Each != float64(10*i+2) {
			t.Errorf("all together: %+v", a)
		}
	}
	if err := team.close(); err != nil {
		t.Error(err)
	}
	if _, err := team.askAll(t.Context(), order{}); err == nil {
		t.Error("a team that was closed answers")
	}
	if err := team.close(); err != nil {
		t.Error(err)
	}
}

// TestAnswer checks that an answer is read from what allreduce.py writes.
func TestAnswer(t *testing.T) {
	for text, want := range map[string]answer{
		`{"nccl": "2.27.5", "library": "/site/nvidia/nccl/lib/libnccl.so.2", "torch": "2.8.0+cu128"}`: {NCCL: "2.27.5", Library: "/site/nvidia/nccl/lib/libnccl.so.2", Torch: "2.8.0+cu128"},
		`{"p50_ns": 21034, "min_ns": 19876, "each_ns": 8123.455}`:                                     {P50: 21034, Min: 19876, Each: 8123.455},
		`{"missing": "PyTorch: No module named 'torch'"}`:                                             {Missing: "PyTorch: No module named 'torch'"},
		`{"error": "DistBackendError: NCCL error"}`:                                                   {Error: "DistBackendError: NCCL error"},
	} {
		var got answer
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, %v", text, got, err)
		}
	}
	if !strings.Contains(allreducePy, `"`+mark+`"`) {
		t.Errorf("answers of allreduce.py do not begin with %q", mark)
	}
}

// TestTeamFails checks that a team reports which process fails or hangs, also while other processes
// wait for ever.
func TestTeamFails(t *testing.T) {
	for how, says := range map[string][]string{
		"lacking": {"members, process 1 of 2: there is no such library"},
		"failing": {"members, process 1 of 2: it does not work"},
		"garbled": {`process 1 of 2: answers "{"`},
		"dying":   {"process 1 of 2: has ended: exit status 7, having printed\n", "xxx\nout of luck"},
		"ending":  {"process 1 of 2: has ended: exit status 0"},
	} {
		team := startMembers(t, "hanging", how)
		_, err := team.askAll(t.Context(), order{Do: "open"})
		for _, s := range says {
			if err == nil || !strings.Contains(err.Error(), s) || len(err.Error()) > tailSize+200 {
				t.Errorf("%s: %v", how, err)
			}
		}
		if missing := (*missingError)(nil); errors.As(err, &missing) != (how == "lacking") {
			t.Errorf("%s: whether something is missing is wrong", how)
		}
		if _, again := team.askAll(t.Context(), order{Do: "open"}); again != err {
			t.Errorf("%s: then %v", how, again)
		}
		if err := team.close(); err != nil {
			t.Errorf("%s: %v", how, err)
		}
	}

	team := startMembers(t, "good", "hanging")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := team.askAll(ctx, order{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with one that hangs: %v", err)
	}

	team = startMembers(t, "good", "odd")
	if _, err := team.askAll(t.Context(), order{}); err != nil {
		t.Error(err)
	}
	if _, err := team.askAll(t.Context(), order{Do: "last"}); err == nil || !strings.Contains(err.Error(), "exit status 9") {
		t.Errorf("a process that ends later: %v", err)
	}

	team = startMembers(t, "good", "bad end")
	if _, err := team.askAll(t.Context(), order{}); err != nil {
		t.Error(err)
	}
	if err := team.close(); err == nil || !strings.Contains(err.Error(), "process 1 of 2: exit status 5\nsomething was not given back") {
		t.Errorf("a process that ends badly: %v", err)
	}

	team = startTeam("nobody", exec.Command("no-such-program-anywhere"))
	if missing := (*missingError)(nil); !errors.As(team.over, &missing) {
		t.Errorf("without a program: %v", team.over)
	}
	team = startTeam("nobody", exec.Command(t.TempDir()))
	if missing := (*missingError)(nil); team.over == nil || errors.As(team.over, &missing) {
		t.Errorf("with a folder for a program: %v", team.over)
	}
}

// TestWorker checks a worker's answers to valid and invalid orders.
func TestWorker(t *testing.T) {
	w := &worker{}
	id := w.do(order{Do: "open", Simulated: 3, Devices: []int{0, 1, 2}})
	if id.Error != "" || len(id.ID) == 0 {
		t.Fatalf("open: %+v", id)
	}
	defer w.group.Close()
	if a := w.do(order{Do: "join", ID: id.ID[1:], Ranks: 3}); a.Error == "" {
		t.Error("joined with half an id")
	}
	if a := w.do(order{Do: "join", ID: id.ID, Ranks: 3}); a.Error != "" || a.Missing != "" {
		t.Fatalf("join: %+v", a)
	}
	a := w.do(order{Do: "time", Bytes: 1 << 10, counts: counts{Warm: 1, Timed: 5, Ahead: 5}})
	if a.Error != "" || a.Min <= 0 || a.P50 < a.Min || a.Each <= 0 {
		t.Errorf("time: %+v", a)
	}
	a = w.do(order{Do: "small", Bytes: 1 << 10, Group: 7, counts: counts{Timed: 3}})
	if a.Error != "" || a.OneByOne <= 0 || a.Recorded <= 0 {
		t.Errorf("small: %+v", a)
	}
	if a := w.do(order{Do: "dance"}); !strings.Contains(a.Error, `"dance"`) {
		t.Errorf("an order that is not known: %+v", a)
	}
	if a := w.do(order{Do: "time", Bytes: 3, counts: counts{Warm: 1, Timed: 1, Ahead: 1}}); a.Error == "" {
		t.Error("reduced three quarters of a number")
	}
}

// TestWork checks that work answers orders until its input ends, and ends at text that is no order.
func TestWork(t *testing.T) {
	var out, errs bytes.Buffer
	if code := work(strings.NewReader(`{"do":"open","simulated":1,"devices":[0]}`+"\n"), &out, &errs); code != 0 || errs.Len() > 0 {
		t.Errorf("exit status %d, %s", code, &errs)
	}
	text, ok := strings.CutPrefix(out.String(), mark)
	var a answer
	if err := json.Unmarshal([]byte(text), &a); !ok || err != nil || len(a.ID) == 0 {
		t.Errorf("answers %s, %v", &out, err)
	}
	if code := work(strings.NewReader("sing\n"), &out, &errs); code != 2 || !strings.Contains(errs.String(), "gpubench: orders: ") {
		t.Errorf("exit status %d, %s", code, &errs)
	}
	if code := work(strings.NewReader(""), &out, &errs); code != 0 {
		t.Errorf("with no orders: exit status %d", code)
	}
}
