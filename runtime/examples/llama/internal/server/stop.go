package server

import "strings"

// A stopper cuts a stream of text at the first stop string. It holds back text that may begin a
// stop string, until the next tokens decide.
type stopper struct {
	stops []string
	held  string
}

// next adds text to the stream. It returns the text that can be sent now, and reports whether a
// stop string follows that text.
func (s *stopper) next(text string) (pass string, stopped bool) {
	text = s.held + text
	end := len(text)
	for _, stop := range s.stops {
		if i := strings.Index(text, stop); i >= 0 && (i < end || !stopped) {
			end, stopped = i, true
		}
	}
	if stopped {
		s.held = ""
		return text[:end], true
	}
	for at := range text {
		if s.begins(text[at:]) {
			end = at
			break
		}
	}
	s.held = text[end:]
	return text[:end], false
}

// begins reports whether the text is the beginning of a stop string.
func (s *stopper) begins(text string) bool {
	for _, stop := range s.stops {
		if strings.HasPrefix(stop, text) {
			return true
		}
	}
	return false
}
