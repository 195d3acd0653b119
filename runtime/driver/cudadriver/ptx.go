package cudadriver

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
)

// releases lists the CUDA releases from 11.0 on. Each entry has the newest PTX version that the
// release writes and its driver reads, and the branch of that driver. Release 12.6 writes the PTX
// of 12.5.
var releases = []struct{ ptx, cuda, driver int }{
	{70, 110, 450}, {71, 111, 455}, {72, 112, 460}, {73, 113, 465}, {74, 114, 470}, {75, 115, 495}, {76, 116, 510}, {77, 117, 515},
	{78, 118, 520}, {80, 120, 525}, {81, 121, 530}, {82, 122, 535}, {83, 123, 545}, {84, 124, 550}, {85, 125, 555}, {86, 127, 565},
	{87, 128, 570}, {88, 129, 575}, {90, 130, 580}, {91, 131, 590}, {92, 132, 595}, {93, 133, 610},
}

var ptxVersion = regexp.MustCompile(`(?m)^\s*\.version\s+(\d)\.(\d)`)

// newerPTX returns a text about an image whose PTX this driver cannot read. The text names a driver
// that can read the PTX. release is the CUDA release of this driver, such as 12040.
func newerPTX(image []byte, release int) string {
	what, with := "the PTX", "of the compiler's CUDA release or newer"
	if m := ptxVersion.FindSubmatch(image); m != nil {
		what = fmt.Sprintf("PTX %s.%s", m[1], m[2])
		n, _ := strconv.Atoi(string(m[1]) + string(m[2]))
		for _, r := range releases {
			if r.ptx == n {
				with = fmt.Sprintf("of release %d (CUDA %d.%d) or newer", r.driver, r.cuda/10, r.cuda%10)
			}
		}
	}
	return fmt.Sprintf("%s needs a driver %s, and this one has CUDA %s: update the driver, compile with a release of CUDA that is no newer "+
		"than the driver's, or compile for the device's own architecture (a cubin)", what, with, cuda.FormatVersion(dl.Version(release)))
}
