package compile

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/diskcache"
)

// keyFormat is a part of every key. Change it when the format of keys or entries changes.
const keyFormat = "puregpu compiled code 1"

// key returns the key of the code that a compiler makes from the source. The key covers the length
// of each list, so that moving a text from one list to the next changes the key.
func (s Source) key(by driver.CompilerInfo) diskcache.Key {
	parts := []string{keyFormat, by.Name, by.Version, by.Build, by.Target, s.Name, s.Text, s.Revision}
	list := func(texts []string) { parts = append(append(parts, fmt.Sprint(len(texts))), texts...) }
	list(s.Options)
	list(s.Names)
	var headers []string
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		headers = append(headers, name, s.Headers[name])
	}
	list(headers)
	if len(s.Link) > 0 {
		parts = append(parts, fmt.Sprint(len(s.Link)))
		list(s.LinkOptions)
		for _, l := range s.Link {
			part := l.key(driver.CompilerInfo{})
			parts = append(parts, string(part[:]))
		}
	}
	return diskcache.KeyOf(parts...)
}

// pack encodes code as a list of texts. Each text has its length before it.
func pack(code driver.Code) []byte {
	var b []byte
	put := func(text string) { b = append(binary.AppendUvarint(b, uint64(len(text))), text...) }
	put(string(code.Image))
	put(code.Log)
	for _, name := range slices.Sorted(maps.Keys(code.Names)) {
		put(name)
		put(code.Names[name])
	}
	return b
}

// unpack is the inverse of pack. It returns false if the bytes are not in pack's format.
func unpack(b []byte) (code driver.Code, ok bool) {
	var texts [][]byte
	for len(b) > 0 {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return code, false
		}
		texts, b = append(texts, b[n:n+int(size)]), b[n+int(size):]
	}
	if len(texts) < 2 || len(texts)%2 != 0 {
		return code, false
	}
	code = driver.Code{Image: texts[0], Log: string(texts[1]), Names: map[string]string{}}
	for i := 2; i < len(texts); i += 2 {
		code.Names[string(texts[i])] = string(texts[i+1])
	}
	return code, true
}
