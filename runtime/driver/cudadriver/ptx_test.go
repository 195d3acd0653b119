package cudadriver

import "testing"

func TestNewerPTX(t *testing.T) {
	const then = ", and this one has CUDA 12.4: update the driver, compile with a release of CUDA that is no newer than the driver's, or compile for the device's own architecture (a cubin)"
	for text, want := range map[string]string{
		"// made by NVRTC\n.version 8.7\n.target sm_90\n": "PTX 8.7 needs a driver of release 570 (CUDA 12.8) or newer",
		" .version\t9.0\n":            "PTX 9.0 needs a driver of release 580 (CUDA 13.0) or newer",
		".version 9.9\n":              "PTX 9.9 needs a driver of the compiler's CUDA release or newer",
		"\x50\xed\x55\xba fat binary": "the PTX needs a driver of the compiler's CUDA release or newer",
	} {
		if got := newerPTX([]byte(text), 12040); got != want+then {
			t.Errorf("%q:\n%s\nwant\n%s", text, got, want+then)
		}
	}
}
