package lockcheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type first struct{}

func (first) Name() string { return "first" }

type second struct{}

func (second) Name() string { return "second" }

// TestOrders checks that each order of locking two mutexes is written once, and that another
// goroutine may unlock them.
func TestOrders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seen")
	t.Setenv(Output, file)
	var a Mutex[first]
	var b RWMutex[second]
	for range 2 {
		a.Lock()
		b.RLock()
		//lint:ignore SA2001 only the order counts
		b.RUnlock()
		a.Unlock()
	}
	b.Lock()
	if !a.TryLock() {
		t.Fatal("it is locked")
	}
	unlocked := make(chan struct{})
	go func() {
		a.Unlock()
		b.Unlock()
		close(unlocked)
	}()
	<-unlocked
	a.Lock() // alone, so no order is written
	//lint:ignore SA2001 only the order counts
	a.Unlock()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var orders []string
	for line := range strings.Lines(string(text)) {
		order, where, _ := strings.Cut(line, "\t")
		if orders = append(orders, order); !strings.Contains(where, "lockcheck.TestOrders") {
			t.Errorf("%q does not say where", line)
		}
	}
	if got := strings.Join(orders, ", "); got != "first second, second [first]" || len(held) != 0 {
		t.Errorf("written: %s; held: %v", got, held)
	}
}

// TestGoroutine checks that goroutine returns the number at the start of the goroutine's stack
// trace.
func TestGoroutine(t *testing.T) {
	if where == 0 && descriptor() != nil {
		t.Error("the number was not found in a goroutine's descriptor, so locking is slow")
	}
	for range 100 {
		done := make(chan bool)
		go func() { done <- goroutine() == printedNumber() }()
		if !<-done {
			t.Error("the number differs from that in the stack")
		}
	}
}
