// Package compilelog parses the messages of compilers.
//
// It knows the forms of NVRTC, of ptxas, which NVRTC runs, and of clang, which is hipRTC's
// compiler:
//
//	saxpy.cu(2): error: identifier "x" is undefined
//	ptxas application ptx input, line 28; error   : Not a name of any known instruction: 'bogus'
//	ptxas error   : Entry function 'f' uses too much shared data (0x61a80 bytes, 0x29000 max)
//	saxpy.hip:2:7: error: use of undeclared identifier 'x'
//	error: unsupported option '--no-such'
//
// and the form of nvJitLink, which has no line number:
//
//	b.cu: link error: error: Linking globals named 'f': symbol multiply defined!
//
// The details of a message are the lines after it, up to the next message, an empty line, or a line
// about the whole compilation.
package compilelog

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/runtime/driver"
)

// kinds are the words that name the kind of a message.
const kinds = `((?:catastrophic |fatal |internal |command-line )?error|warning|remark|note|info|fatal)`

var (
	nvrtc = regexp.MustCompile(`^(.+?)\((\d+)\): ` + kinds + `(?: #([0-9]+(?:-[A-Z])?))?: (.*)$`)
	clang = regexp.MustCompile(`^(.+?):(\d+):(\d+): ` + kinds + `: (.*)$`)
	ptxas = regexp.MustCompile(`^(ptxas|nvlink) +(?:application )?(.*), line (\d+); ` + kinds + ` *: (.*)$`)
	link  = regexp.MustCompile(`^(.+?): link error: ` + kinds + `: (.*)$`)
	bare  = regexp.MustCompile(`^` + kinds + `: (.*)$`)
	tool  = regexp.MustCompile(`^([\w.+-]+):? +` + kinds + ` *: (.*)$`)

	// footer matches a line about the whole compilation, which is not a message.
	footer = regexp.MustCompile(`^(\d+ (catastrophic )?errors? (detected|generated)|\d+ warnings? (and \d+ errors? )?generated|Compilation terminated|Remark: )`)
)

// Parse returns the messages of a log. It skips lines that are neither messages nor details.
func Parse(log string) []driver.Message {
	var all []driver.Message
	var details []string // detail lines of the last message
	open := false        // the next lines may be details
	end := func() {
		if n := len(all); n > 0 && len(details) > 0 {
			m := &all[n-1]
			m.Detail = strings.Join(details, "\n")
			if m.Column == 0 {
				m.Column = column(details)
			}
		}
		details, open = nil, false
	}
	for line := range strings.Lines(log) {
		line = strings.TrimRight(line, "\x00\r\n")
		if m, ok := parse(line); ok {
			end()
			all, open = append(all, m), true
			continue
		}
		switch {
		case strings.Trim(line, " \t\x00") == "" || footer.MatchString(line):
			end()
		case open:
			details = append(details, line)
		}
	}
	end()
	return all
}

// parse reads the first line of a message.
func parse(line string) (m driver.Message, ok bool) {
	if x := clang.FindStringSubmatch(line); x != nil {
		return driver.Message{File: x[1], Line: number(x[2]), Column: number(x[3]), Kind: x[4], Text: x[5]}, true
	}
	if x := nvrtc.FindStringSubmatch(line); x != nil {
		return driver.Message{File: x[1], Line: number(x[2]), Kind: x[3], Number: x[4], Text: x[5]}, true
	}
	if x := ptxas.FindStringSubmatch(line); x != nil {
		return driver.Message{File: x[2], Line: number(x[3]), Kind: x[4], Text: x[1] + ": " + x[5]}, true
	}
	if x := link.FindStringSubmatch(line); x != nil {
		return driver.Message{File: x[1], Kind: x[2], Text: x[3]}, true
	}
	if x := bare.FindStringSubmatch(line); x != nil {
		return driver.Message{Kind: x[1], Text: x[2]}, true
	}
	if x := tool.FindStringSubmatch(line); x != nil {
		return driver.Message{Kind: x[2], Text: x[1] + ": " + x[3]}, true
	}
	return m, false
}

// number parses digits. It returns 0, which means unknown, if the number is too large.
func number(digits string) int {
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return 0
	}
	return int(n)
}

// column returns the column of the caret in NVRTC's details, or 0 if there is none. NVRTC indents
// the source line and the caret by two spaces.
func column(details []string) int {
	for _, line := range details {
		if strings.TrimSpace(line) == "^" {
			return max(strings.IndexByte(line, '^')-1, 0)
		}
	}
	return 0
}
