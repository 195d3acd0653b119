package leaktest

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestLeft(t *testing.T) {
	before, end := runtime.NumGoroutine(), make(chan struct{})
	go waiting(end)
	if err := left(before, 0); err == nil || !strings.Contains(err.Error(), "created by") || !strings.Contains(err.Error(), "TestLeft") {
		t.Errorf("a goroutine runs: %v", err)
	}
	close(end)
	if err := left(before, time.Minute); err != nil {
		t.Error(err)
	}
}

func waiting(end chan struct{}) { <-end }
