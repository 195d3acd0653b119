package nvml

import (
	"slices"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

// TestRefused checks that releases before 11.4 refuse the functions with lists whose elements had
// another size then, and that no release refuses another function. The test's list of functions was
// made by hand from the headers of all releases from 11.1 to 13.3.
func TestRefused(t *testing.T) {
	for _, release := range []dl.Version{11_010, 11_020, 11_030, 11_040, 11_080, 12_000, 12_040, 13_000, 13_030} {
		var want, got []string
		if release < 11_040 {
			want = []string{
				"nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses",
				"nvmlDeviceGetGridLicensableFeatures", "nvmlDeviceGetGridLicensableFeatures_v2", "nvmlDeviceGetGridLicensableFeatures_v3",
			}
		}
		for _, s := range symbols {
			if slices.ContainsFunc(s.Misfits, func(m dl.Misfit) bool { return release >= m.From && (m.To == 0 || release < m.To) }) {
				got = append(got, s.Name)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("NVML %s refuses %q\nwant %q", FormatVersion(release), got, want)
		}
	}
}
