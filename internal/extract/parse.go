package extract

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing/fstest"

	"modernc.org/cc/v4"

	"github.com/puregpu/puregpu/symbols"
)

// A source is the input of one translation unit: headers, stand-ins for system headers, and macros
// defined first. The extractor reads nothing else from the machine and runs no compiler.
type source struct {
	main    string            // name of the header to parse
	files   fs.FS             // the folders of headers
	stubs   map[string]string // stand-ins, by the name in #include
	defines string            // #define lines
	keep    func(file string) bool
	inline  bool // bind inline functions too
	windows bool // the library also exists on Windows
}

const stddef = `
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __WCHAR_TYPE__ wchar_t;
typedef struct { long long __max_align_ll; long double __max_align_ld; } max_align_t;
#define NULL ((void*)0)
#define offsetof(type, member) __builtin_offsetof(type, member)
`

const stdint = `#include <features.h>
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef long int64_t; typedef unsigned long uint64_t;
typedef long intptr_t; typedef unsigned long uintptr_t;
typedef long intmax_t; typedef unsigned long uintmax_t;
typedef int8_t int_least8_t; typedef int16_t int_least16_t; typedef int32_t int_least32_t; typedef int64_t int_least64_t;
typedef uint8_t uint_least8_t; typedef uint16_t uint_least16_t; typedef uint32_t uint_least32_t; typedef uint64_t uint_least64_t;
typedef int8_t int_fast8_t; typedef long int_fast16_t, int_fast32_t, int_fast64_t;
typedef uint8_t uint_fast8_t; typedef unsigned long uint_fast16_t, uint_fast32_t, uint_fast64_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647-1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295U
#define INT64_MIN (-9223372036854775807L-1)
#define INT64_MAX 9223372036854775807L
#define UINT64_MAX 18446744073709551615UL
#define INTPTR_MIN INT64_MIN
#define INTPTR_MAX INT64_MAX
#define UINTPTR_MAX UINT64_MAX
#define INTMAX_MIN INT64_MIN
#define INTMAX_MAX INT64_MAX
#define UINTMAX_MAX UINT64_MAX
#define PTRDIFF_MIN INT64_MIN
#define PTRDIFF_MAX INT64_MAX
#define SIZE_MAX UINT64_MAX
#define INT8_C(x) x
#define UINT8_C(x) x
#define INT16_C(x) x
#define UINT16_C(x) x
#define INT32_C(x) x
#define UINT32_C(x) x ## U
#define INT64_C(x) x ## L
#define UINT64_C(x) x ## UL
#define INTMAX_C(x) x ## L
#define UINTMAX_C(x) x ## UL
`

const limits = `#include <features.h>
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647-1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MIN (-9223372036854775807L-1)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-9223372036854775807LL-1)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
`

// floats and mathNumbers define the numeric macros that are not integers. A header may test for
// them with #ifdef.
const floats = `
#define DBL_EPSILON __DBL_EPSILON__
#define DBL_MAX __DBL_MAX__
#define DBL_MIN __DBL_MIN__
#define DBL_TRUE_MIN __DBL_DENORM_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_TRUE_MIN __FLT_DENORM_MIN__
#define LDBL_EPSILON __LDBL_EPSILON__
#define LDBL_MAX __LDBL_MAX__
#define LDBL_MIN __LDBL_MIN__
#define LDBL_TRUE_MIN __LDBL_DENORM_MIN__
`

const mathNumbers = `
#define HUGE_VAL (__builtin_huge_val ())
#define HUGE_VALF (__builtin_huge_valf ())
#define HUGE_VALL (__builtin_huge_vall ())
#define INFINITY (__builtin_inff ())
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_E 2.7182818284590452354
#define M_LN10 2.30258509299404568402
#define M_LN2 0.69314718055994530942
#define M_LOG10E 0.43429448190325182765
#define M_LOG2E 1.4426950408889634074
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_SQRT1_2 0.70710678118654752440
#define M_SQRT2 1.41421356237309504880
#define NAN (__builtin_nanf (""))
`

// cTypes are C's standard typedefs; a table uses their names.
var cTypes = map[string]bool{
	"size_t": true, "int8_t": true, "uint8_t": true, "int16_t": true, "uint16_t": true, "int32_t": true,
	"uint32_t": true, "int64_t": true, "uint64_t": true, "intptr_t": true, "uintptr_t": true, "ptrdiff_t": true, "bool": true,
}

// systemHeaders declare the types of C's standard headers. Headers of GPU libraries need only these
// types and the numbers that standIns adds.
var systemHeaders = map[string]string{
	"assert.h":      "",
	"complex.h":     "#define complex _Complex\n",
	"ctype.h":       "",
	"errno.h":       "",
	"fenv.h":        "",
	"float.h":       floats,
	"inttypes.h":    stdint,
	"limits.h":      limits,
	"locale.h":      "",
	"math.h":        mathNumbers,
	"setjmp.h":      "typedef struct __jmp_buf_tag jmp_buf[1], sigjmp_buf[1];\n",
	"signal.h":      posix + "typedef struct puregpu_sigset_t sigset_t; typedef struct puregpu_siginfo_t siginfo_t; typedef int sig_atomic_t; typedef void (*sighandler_t)(int); struct sigaction;\n",
	"stdalign.h":    "#define alignas _Alignas\n#define alignof _Alignof\n",
	"stdarg.h":      "typedef __builtin_va_list va_list;\n",
	"stdbool.h":     "#define bool _Bool\n#define true 1\n#define false 0\n",
	"stddef.h":      stddef,
	"stdint.h":      stdint,
	"stdio.h":       stddef + "typedef struct _IO_FILE FILE;\n",
	"stdlib.h":      stddef,
	"stdnoreturn.h": "#define noreturn _Noreturn\n",
	"string.h":      stddef,
	"time.h":        stddef + "typedef long time_t;\ntypedef long clock_t;\nstruct tm;\nstruct timespec;\n",
	"wchar.h":       stddef + "typedef unsigned int wint_t;\n",

	// Headers of POSIX and Linux.
	"alloca.h":       "",
	"arpa/inet.h":    posix + sockets,
	"byteswap.h":     "",
	"dirent.h":       posix + "typedef struct __dirstream DIR; struct dirent;\n",
	"dlfcn.h":        "",
	"endian.h":       "",
	"err.h":          "",
	"features.h":     cdefs,
	"getopt.h":       "struct option;\n",
	"glob.h":         "typedef struct puregpu_glob_t glob_t;\n",
	"grp.h":          posix + "struct group;\n",
	"libgen.h":       "",
	"memory.h":       stddef,
	"strings.h":      stddef,
	"pthread.h":      posix,
	"sched.h":        posix,
	"fcntl.h":        posix,
	"unistd.h":       posix,
	"linux/types.h":  stdint + "typedef uint8_t __u8; typedef uint16_t __u16, __be16, __le16; typedef uint32_t __u32, __be32, __le32; typedef unsigned long long __u64, __be64, __le64;\ntypedef int8_t __s8; typedef int16_t __s16; typedef int32_t __s32; typedef long long __s64; typedef unsigned long __kernel_size_t; typedef long __kernel_ssize_t, __kernel_off_t, __kernel_time_t, __kernel_clock_t; typedef int __kernel_pid_t; typedef long long __kernel_loff_t; typedef uint16_t __sum16; typedef uint32_t __wsum; typedef unsigned int __poll_t;\n#define __aligned_u64 __u64 __attribute__((aligned(8)))\n#define __aligned_s64 __s64 __attribute__((aligned(8)))\n",
	"net/if.h":       posix + sockets + "struct ifreq; struct ifconf; struct if_nameindex;\n",
	"netdb.h":        posix + sockets + "struct addrinfo; struct hostent; struct servent; struct protoent; struct netent;\n",
	"netinet/in.h":   posix + sockets,
	"netinet/tcp.h":  posix + sockets,
	"poll.h":         "typedef unsigned long nfds_t; struct pollfd;\n",
	"pwd.h":          posix + "struct passwd;\n",
	"regex.h":        "typedef struct puregpu_regex_t regex_t; typedef int regoff_t; typedef struct puregpu_regmatch_t regmatch_t;\n",
	"semaphore.h":    posix + "typedef struct puregpu_sem_t sem_t;\n",
	"sys/cdefs.h":    cdefs,
	"sys/poll.h":     "typedef unsigned long nfds_t; struct pollfd;\n",
	"sys/resource.h": posix + "typedef unsigned long rlim_t; struct rlimit; struct rusage;\n",
	"sys/select.h":   posix + "typedef struct puregpu_fd_set fd_set;\n",
	"sys/socket.h":   posix + sockets,
	"sys/stat.h":     posix + "struct stat;\n",
	"sys/time.h":     posix + "typedef struct puregpu_fd_set fd_set; struct timeval;\nstruct timezone;\n",
	"sys/types.h":    posix,
	"sys/uio.h":      posix + "struct iovec;\n",
	"sys/un.h":       posix + sockets + "struct sockaddr_un;\n",
	"sys/utsname.h":  "struct utsname;\n",
	"termios.h":      "typedef unsigned char cc_t; typedef unsigned int speed_t, tcflag_t; struct termios;\n",
	"wctype.h":       stddef + "typedef unsigned int wint_t;\n",
}

const posix = stdint + stddef + `
typedef long ssize_t, off_t, loff_t, off64_t, time_t, suseconds_t, blkcnt_t, clock_t;
typedef int pid_t, key_t, clockid_t;
typedef unsigned int uid_t, gid_t, mode_t, id_t, useconds_t;
typedef unsigned long dev_t, ino_t, pthread_t;
typedef unsigned char u_char; typedef unsigned short u_short; typedef unsigned int u_int; typedef unsigned long u_long;
typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong; typedef char *caddr_t; typedef int daddr_t;
typedef uint8_t u_int8_t; typedef uint16_t u_int16_t; typedef uint32_t u_int32_t; typedef uint64_t u_int64_t;
struct timespec; struct timeval; struct sched_param;
typedef struct puregpu_pthread_mutex_t pthread_mutex_t; typedef struct puregpu_pthread_cond_t pthread_cond_t; typedef struct puregpu_pthread_attr_t pthread_attr_t;
typedef int pthread_once_t; typedef unsigned int pthread_key_t;
typedef struct puregpu_pthread_rwlock_t pthread_rwlock_t; typedef struct puregpu_pthread_spinlock_t pthread_spinlock_t; typedef struct puregpu_pthread_barrier_t pthread_barrier_t;
typedef struct puregpu_pthread_mutexattr_t pthread_mutexattr_t; typedef struct puregpu_pthread_condattr_t pthread_condattr_t;
typedef struct puregpu_pthread_rwlockattr_t pthread_rwlockattr_t; typedef struct puregpu_pthread_barrierattr_t pthread_barrierattr_t;
`

const sockets = `
typedef unsigned int socklen_t; typedef unsigned short sa_family_t, in_port_t; typedef unsigned int in_addr_t;
struct sockaddr; struct sockaddr_in; struct sockaddr_in6; struct sockaddr_storage; struct in_addr; struct in6_addr; struct msghdr; struct iovec;
`

const cdefs = `#ifndef _FEATURES_H
#define _FEATURES_H 1
#define _SYS_CDEFS_H 1
#define __GNU_LIBRARY__ 6
#define __GLIBC__ 2
#define __GLIBC_MINOR__ 36
#define __WORDSIZE 64
#define __TIMESIZE __WORDSIZE
#define __USE_ATFILE 1
#define __USE_ISOC11 1
#define __USE_ISOC95 1
#define __USE_ISOC99 1
#define __USE_MISC 1
#define __USE_POSIX 1
#define __USE_POSIX199309 1
#define __USE_POSIX199506 1
#define __USE_POSIX2 1
#define __USE_POSIX_IMPLICITLY 1
#define __USE_XOPEN2K 1
#define __USE_XOPEN2K8 1
#ifdef _GNU_SOURCE
#define __USE_GNU 1
#endif
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE 1
#endif
#ifndef _ATFILE_SOURCE
#define _ATFILE_SOURCE 1
#endif
#ifndef _POSIX_SOURCE
#define _POSIX_SOURCE 1
#endif
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#endif
#define __GLIBC_PREREQ(maj, min) ((__GLIBC__ << 16) + __GLIBC_MINOR__ >= ((maj) << 16) + (min))
#define __GNUC_PREREQ(maj, min) ((__GNUC__ << 16) + __GNUC_MINOR__ >= ((maj) << 16) + (min))
#define __glibc_clang_prereq(maj, min) 0
#define __glibc_has_attribute(attr) __has_attribute(attr)
#define __glibc_has_builtin(name) __HAS_BUILTIN(name)
#define __BEGIN_DECLS
#define __END_DECLS
#define __THROW
#define __nonnull(params)
#define __attribute_deprecated__
#define __wur
#define __P(args) args
`

// A header holds the records of a parsed translation unit, in source order.
type header struct {
	table symbols.Table // handles, scalars, aliases, enums, structs, callbacks, constants
	funcs []function
	alias map[string]string // by macro name, the identifier that is the macro's text

	where map[string]string // header and line of types, by name

	elsewhere map[string]string // headers outside the library, by the names that they declare
	opaque    map[string]string // names of undefined structs, with their tags
	refused   []refusal
	inlined   []refusal        // functions that the headers define
	variables []string         // extern variables
	bad       map[string]error // names that are refused

	recovered *recovery
}

// A refusal is a declaration that a table cannot hold.
type refusal struct {
	name  string
	where string // header and line
	err   error
}

func (r refusal) Error() string { return fmt.Sprintf("%s: %s: %v", r.where, r.name, r.err) }

// A function is the declaration of a function and the comment before it.
type function struct {
	symbols.Function
	doc   comment
	where string // header and line
}

// parse reads a header. It leaves out declarations that the C front end cannot read.
func parse(s source) (*header, error) {
	r := recovery{marks: -1}
	var first error
	for {
		h, err := parseOnce(s, &r)
		if err == nil {
			return h, nil
		}
		if errors.Is(err, errLostPragma) {
			return nil, inFolder(s.files, fmt.Errorf("%w; %w", first, err))
		}
		if first == nil {
			first = err
		}
		if !r.next(s.all(&r), err) {
			return nil, inFolder(s.files, s.unended(first))
		}
	}
}

// unended adds the place of a missing semicolon to an error at the end of the input: the C front end
// takes a function without a semicolon for one with C's old list of parameters, up to the end.
func (s *source) unended(err error) error {
	if !strings.Contains(err.Error(), "end of "+s.main+":") {
		return err
	}
	names := []string{s.main}
	for _, m := range includes.FindAllStringSubmatch(s.stubs[s.main], -1) {
		names = append(names, m[1])
	}
	for _, name := range names {
		text, readErr := fs.ReadFile(s.files, name)
		if readErr != nil {
			continue
		}
		text = directiveLines.ReplaceAllFunc(comments.ReplaceAllFunc(text, blanks), blanks)
		if at := noSemicolon.FindIndex(text); at != nil {
			return fmt.Errorf("%s:%d: is a semicolon missing here? %w", name, 1+bytes.Count(text[:at[0]], []byte("\n")), err)
		}
	}
	return err
}

// noSemicolon matches the beginning of a declaration after a line that ends in a bracket.
var noSemicolon = regexp.MustCompile(`\)[ \t\r]*\n\s*[A-Za-z]*[a-z]\w*(?:[ \t]+|[ \t]*\*)[^;{}()]*\(`)

// all returns the headers. A stand-in or a header that r has blanked hides a header of that name.
func (s *source) all(r *recovery) overlayFS {
	files := fstest.MapFS{}
	for _, set := range []map[string]string{standIns().headers, s.stubs} {
		for name, text := range set {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	for name, text := range r.files {
		files[name] = &fstest.MapFile{Data: text}
	}
	return overlayFS{files, s.files}
}

func parseOnce(s source, r *recovery) (h *header, err error) {
	defer func() {
		if p := recover(); p != nil { // the front end panics on some headers
			h, err = nil, fmt.Errorf("%s: the C front end cannot read this header: %v", s.main, p)
		}
	}()
	abi, err := cc.NewABI("linux", "amd64")
	if err != nil {
		return nil, err
	}
	all := s.all(r)
	text, err := fs.ReadFile(all, s.main)
	if err != nil {
		return nil, err
	}
	cfg := &cc.Config{
		ABI: abi, FS: all, FSOnly: true, Header: true, EvalAllMacros: true, IgnoreStaticAssert: true,
		IncludePaths: []string{"", "."}, SysIncludePaths: []string{"."}, HasBuiltin: hasName,
	}
	st := &stream{}
	ast, err := translate(cfg, st, []cc.Source{
		{Name: "<predefined>", Value: predefined() + s.defines},
		{Name: "<builtin>", Value: cc.Builtin},
		{Name: s.main, Value: string(text)},
	})
	if r.marks < 0 {
		r.marks = st.marks
	}
	if st.marks < r.marks {
		return nil, errLostPragma
	}
	if errors.Is(err, errEndless) {
		if c := cycle(all, s.main); c != "" {
			err = fmt.Errorf("%s: %w", c, err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.main, err)
	}
	w := &walker{keep: s.keep, inline: s.inline, windows: s.windows, seen: map[string]bool{}, named: map[string]string{}, unnamed: map[*body]string{}, apart: map[string]bool{}, badAt: map[string]string{}, stream: st}
	w.lay = &layouter{stream: st, bad: map[string]error{}, shapes: map[*body]*shape{}, odd: len(st.foreign) > 0}
	r.apply(w.lay.bad)
	w.out.recovered = r
	for _, x := range r.refused {
		if file, _, _ := strings.Cut(x.where, ":"); s.keep(file) {
			w.out.refused = append(w.out.refused, x)
		}
	}
	w.out.elsewhere = map[string]string{}
	w.out.alias, w.out.opaque, w.out.where = map[string]string{}, map[string]string{}, map[string]string{}
	if err := w.walk(ast); err != nil {
		return nil, err
	}
	w.macros(ast)
	w.out.bad = w.lay.bad
	return &w.out, nil
}
