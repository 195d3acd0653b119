//go:build ignore

// Command gen makes numbers.txt: the numeric macros of the Linux C library's headers. Headers of
// other libraries test for the macros with #ifdef, and define constants with them.
//
//	go run gen.go
//
// A "gnu" after a macro means that it needs _GNU_SOURCE. The command needs gcc,
// aarch64-linux-gnu-gcc and the headers of glibc for both processors. A number that differs between
// amd64 and arm64 is followed by an exclamation mark; it cannot become a constant.
package main

import (
	"bytes"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

var headers = strings.Fields(`arpa/inet.h ctype.h dirent.h dlfcn.h err.h errno.h fcntl.h features.h fenv.h float.h getopt.h glob.h
	grp.h langinfo.h libgen.h limits.h linux/limits.h locale.h malloc.h math.h net/if.h netdb.h netinet/in.h netinet/tcp.h poll.h
	pthread.h pwd.h regex.h sched.h semaphore.h setjmp.h signal.h spawn.h stdio.h stdlib.h string.h sys/file.h sys/ioctl.h
	sys/ipc.h sys/mman.h sys/param.h sys/poll.h sys/resource.h sys/select.h sys/shm.h sys/socket.h sys/stat.h sys/statvfs.h
	sys/sysmacros.h sys/time.h sys/times.h sys/types.h sys/uio.h sys/un.h sys/utsname.h sys/wait.h syslog.h termios.h time.h
	unistd.h utime.h wchar.h wctype.h`)

var (
	marker = regexp.MustCompile(`^# \d+ "([^"]+)"`)
	macro  = regexp.MustCompile(`^#define ([A-Za-z]\w*|_[A-Z]\w*|__GLIBC__|__GLIBC_MINOR__|__GNU_LIBRARY__) (\S.*)$`)
)

func run(cc, text string, args ...string) string {
	cmd := exec.Command(cc, append([]string{"-std=gnu11", "-w", "-x", "c", "-"}, args...)...)
	cmd.Stdin = strings.NewReader(text)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		log.Fatalf("%s: %v\n%s", cc, err, said.String())
	}
	return string(out)
}

// public reports whether a file is in the list headers.
func public(file string) bool {
	return slices.ContainsFunc(headers, func(h string) bool {
		return strings.HasSuffix(file, "/include/"+h) || strings.HasSuffix(file, "/x86_64-linux-gnu/"+h)
	})
}

// macros returns the macros defined after a header is included, by the file that defines them.
func macros(header string, flags ...string) map[string][]string {
	out := map[string][]string{}
	file := ""
	for _, line := range strings.Split(run("gcc", "#include <"+header+">\n", append(flags, "-E", "-dD")...), "\n") {
		if m := marker.FindStringSubmatch(line); m != nil {
			file = m[1]
		} else if m := macro.FindStringSubmatch(line); m != nil && strings.HasPrefix(file, "/usr") && (!strings.HasSuffix(m[1], "_H") || public(file)) {
			out[file] = append(out[file], m[1])
		}
	}
	return out
}

// values evaluates macros of a header. It returns a C literal for each macro that is a number.
func values(cc, header string, names []string) map[string]string {
	header = "#define _GNU_SOURCE\n#include <" + header + ">\n"
	ask := func(names []string) (text string) {
		text = header
		for _, name := range names {
			text += fmt.Sprintf("#line 1 %q\nenum { puregpu_%s = (_Bool)((%s) != 0) }; __typeof__(%s) puregpu_type_%s;\n", "at-"+name, name, name, name, name)
		}
		return text
	}
	for { // gcc reports an undeclared name once
		cmd := exec.Command(cc, "-std=gnu11", "-w", "-fmax-errors=0", "-ftrack-macro-expansion=0", "-x", "c", "-", "-fsyntax-only")
		cmd.Stdin = strings.NewReader(ask(names))
		said, _ := cmd.CombinedOutput()
		bad := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)^at-(\w+):.*error`).FindAllStringSubmatch(string(said), -1) {
			bad[m[1]] = true
		}
		if len(bad) == 0 {
			break
		}
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return bad[name] })
	}
	text := header
	for _, name := range names {
		text += fmt.Sprintf("struct { long type; long long value; } const puregpu_%s = {_Generic((%s), int: 1, unsigned: 2, long: 3, unsigned long: 4, long long: 5, unsigned long long: 6, default: 0), (long long)(%s)};\n", name, name, name)
	}
	out := map[string]string{}
	asm := run(cc, text, "-S", "-o", "-")
	name, words := "", []string{}
	done := func() {
		if name == "" || len(words) < 2 {
			return
		}
		suffix := map[string]string{"1": "", "2": "U", "3": "L", "4": "UL", "5": "LL", "6": "ULL"}
		s, ok := suffix[words[0]]
		if !ok {
			return
		}
		v := words[1]
		if strings.HasPrefix(v, "-") {
			if strings.HasPrefix(s, "U") {
				var n int64
				fmt.Sscan(v, &n)
				v = fmt.Sprint(uint64(n))
			} else if v == "-2147483648" || v == "-9223372036854775808" {
				var n int64
				fmt.Sscan(v, &n)
				v = fmt.Sprintf("(%d%s - 1)", n+1, s)
				s = ""
			} else {
				v, s = "("+v+s+")", ""
			}
		}
		out[name] = v + s
	}
	for _, line := range strings.Split(asm, "\n") {
		f := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "puregpu_") && strings.HasSuffix(line, ":"):
			done()
			name, words = strings.TrimSuffix(strings.TrimPrefix(line, "puregpu_"), ":"), nil
		case len(f) == 2 && (f[0] == ".quad" || f[0] == ".xword"):
			words = append(words, f[1])
		case len(f) == 2 && f[0] == ".zero" && f[1] == "8":
			words = append(words, "0")
		case len(f) == 2 && f[0] == ".zero" && f[1] == "16":
			words = append(words, "0", "0")
		}
	}
	done()
	return out
}

func main() {
	log.SetFlags(0)
	sections := map[string]string{}
	includes := map[string][]string{}
	always, perhaps := map[string][]string{}, map[string][]string{} // names by file, without and with _GNU_SOURCE
	from := map[string]string{}                                     // by file, a header that includes the file
	for _, h := range headers {
		plain, gnu := macros(h), macros(h, "-D_GNU_SOURCE")
		for file, names := range plain {
			always[file] = names
		}
		for file, names := range gnu {
			perhaps[file], from[file] = names, h
			if plain[file] == nil {
				file += "+" // with _GNU_SOURCE only
			}
			includes[h] = append(includes[h], file)
		}
	}
	for file, names := range perhaps {
		amd, arm := values("gcc", from[file], names), values("aarch64-linux-gnu-gcc", from[file], names)
		text := ""
		for _, name := range names {
			if amd[name] == "" {
				continue
			}
			text += name + " " + amd[name]
			if amd[name] != arm[name] {
				text += " !"
			}
			if !slices.Contains(always[file], name) {
				text += " gnu"
			}
			text += "\n"
		}
		sections[file] = text
	}
	var out strings.Builder
	short := regexp.MustCompile(`^/usr/(include|lib)/(x86_64-linux-gnu/)?(gcc/x86_64-linux-gnu/\d+/include/)?`)
	for _, file := range slices.Sorted(maps.Keys(sections)) {
		if text := sections[file]; text != "" {
			fmt.Fprintf(&out, "# %s\n%s", short.ReplaceAllString(file, ""), text)
		}
	}
	for _, h := range headers {
		names := []string{}
		for _, file := range slices.Sorted(slices.Values(includes[h])) {
			if sections[strings.TrimSuffix(file, "+")] != "" {
				names = append(names, short.ReplaceAllString(file, ""))
			}
		}
		fmt.Fprintf(&out, "> %s %s\n", h, strings.Join(names, " "))
	}
	if err := os.WriteFile("numbers.txt", []byte(out.String()), 0o644); err != nil {
		log.Fatal(err)
	}
}
