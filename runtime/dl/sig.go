package dl

import (
	"fmt"
	"strings"
)

// maxStruct bounds the size of a struct passed by value, in bytes.
const maxStruct = 1 << 12

// maxParams bounds the number of parameters.
const maxParams = 64

// A param is one parameter of a signature.
type param struct {
	kind byte // 'w', 'f', 'd', 's' or 'h'
	size int  // size of an 's' or an 'h', in bytes
	elem int  // size of the floats of an 'h'
}

// words returns the number of 8-byte words that p fills when passed by value.
func (p param) words() int {
	if p.kind == 's' || p.kind == 'h' {
		return (p.size + 7) / 8
	}
	return 1
}

// nextParam returns the first parameter of sig, and the rest of sig. sig must not be empty.
func nextParam(sig string) (p param, rest string, err error) {
	switch c := sig[0]; c {
	case 'w', 'f', 'd':
		return param{kind: c}, sig[1:], nil
	case 's':
		n, i := 0, 1
		for ; i < len(sig) && '0' <= sig[i] && sig[i] <= '9'; i++ {
			if n = n*10 + int(sig[i]-'0'); n > maxStruct {
				return param{}, "", fmt.Errorf("signature %q: struct larger than %d bytes", sig, maxStruct)
			}
		}
		if i == 1 || i == len(sig) || sig[i] != ';' {
			return param{}, "", fmt.Errorf("signature %q: want s<size>;", sig)
		}
		switch n {
		case 0, 1, 2, 4, 8:
			return param{}, "", fmt.Errorf("signature %q: a struct of %d bytes is not an s", sig, n)
		}
		return param{kind: 's', size: n}, sig[i+1:], nil
	case 'h':
		if len(sig) < 4 || sig[1] < '1' || sig[1] > '4' || sig[2] != 'f' && sig[2] != 'd' || sig[3] != ';' {
			return param{}, "", fmt.Errorf("signature %q: want h<1 to 4>f; or h<1 to 4>d;", sig)
		}
		elem := map[byte]int{'f': 4, 'd': 8}[sig[2]]
		return param{kind: 'h', size: int(sig[1]-'0') * elem, elem: elem}, sig[4:], nil
	}
	return param{}, "", fmt.Errorf("signature %q: unknown code %q", sig, sig[0])
}

// cutResult splits a signature into its parameters and the code of its result: 'f' for a float, 'd'
// for a double, 0 for any other result.
func cutResult(sig string) (params string, result byte) {
	if n := len(sig) - 2; n >= 0 && sig[n] == '>' && (sig[n+1] == 'f' || sig[n+1] == 'd') {
		return sig[:n], sig[n+1]
	}
	return sig, 0
}

func countParams(sig string) (int, error) {
	n := 0
	sig, _ = cutResult(sig)
	for sig != "" {
		_, rest, err := nextParam(sig)
		if err != nil {
			return 0, err
		}
		sig = rest
		n++
	}
	if n > maxParams {
		return 0, fmt.Errorf("signature of %d parameters, more than %d", n, maxParams)
	}
	return n, nil
}

// onlyWords reports whether every parameter of sig is a word and the result is not a float or a
// double.
func onlyWords(sig string) bool {
	return strings.Count(sig, "w") == len(sig)
}
