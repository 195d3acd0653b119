package traceformat_test

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	. "github.com/puregpu/puregpu/internal/traceformat"
)

// full returns arguments without zero fields.
func full(t *testing.T) (a Args) {
	v := reflect.ValueOf(&a).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case string:
			f.SetString("x")
		case bool:
			f.SetBool(true)
		case int, Time, int64:
			f.SetInt(1)
		case uint64:
			f.SetUint(1)
		case float64:
			f.SetFloat(1)
		case [3]uint32:
			f.Set(reflect.ValueOf([3]uint32{1, 1, 1}))
		case []Point:
			f.Set(reflect.ValueOf([]Point{{1, "x", 1}}))
		case []Series:
		default:
			t.Fatalf("Args.%s has a type that this test does not know", v.Type().Field(i).Name)
		}
	}
	return a
}

// TestPageListsArgs checks that docs/trace-format.md lists every argument that can be written. The
// page's table for submissions must list no other arguments.
func TestPageListsArgs(t *testing.T) {
	page, err := os.ReadFile("../../docs/trace-format.md")
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]bool{}
	add := func(e Event) {
		e.Args = full(t)
		if e.Phase == Metadata && e.Name == MetaThread {
			e.Args.Kind = e.Cat
		}
		if e.Phase == Metadata && e.Name == MetaProcess {
			e.Args.Kind = KindDevice
		}
		var got struct{ Args map[string]any }
		if err := json.Unmarshal(e.Append(nil), &got); err != nil {
			t.Fatal(err)
		}
		for key := range got.Args {
			written[key] = true
		}
	}
	for _, cat := range []string{CatSubmission, CatDevice, CatCommand, CatCall, CatWait, CatSignal, CatLoss, CatDrop, CatArrows, CatCut, CatClock} {
		add(Event{Phase: Complete, Cat: cat})
	}
	for _, name := range []string{MetaTrace, MetaProcess, MetaProcessSort, MetaThreadSort, MetaCommand, MetaNodes} {
		add(Event{Phase: Metadata, Name: name})
	}
	for _, kind := range []string{KindHost, KindQueue, KindStream, KindChannel, KindNodes} {
		add(Event{Phase: Metadata, Name: MetaThread, Cat: kind})
	}
	if len(written) < 40 {
		t.Errorf("only %d arguments are written: %v", len(written), written)
	}
	for key := range written {
		if !strings.Contains(string(page), "`"+key+"`") {
			t.Errorf("the page lacks `%s`", key)
		}
	}
	_, table, ok := strings.Cut(string(page), "\n| arg | is |\n|---|---|\n")
	if !ok {
		t.Fatal("the page has no table of arguments")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			if !written[m[1]] {
				t.Errorf("`%s` is never written", m[1])
			}
		}
	}
}
