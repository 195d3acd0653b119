package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/internal/cudaheaders"
	"github.com/puregpu/puregpu/internal/hostinfo"
	"github.com/puregpu/puregpu/internal/secureenv"
	"github.com/puregpu/puregpu/runtime/dl"
)

type found struct {
	probe   *probe
	lib     Library
	devices []Device
	err     error // why the library or its devices cannot be used
}

// variables lists the environment variables that may decide which libraries and devices are used.
var variables = []string{
	"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "CUDA_DEVICE_ORDER", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
	"LD_LIBRARY_PATH", "LD_PRELOAD", "CUDA_HOME", "CUDA_PATH", "NCCL_HOME", "ROCM_PATH", "HIP_PATH", "CONDA_PREFIX", "VIRTUAL_ENV", "NIX_LD_LIBRARY_PATH",
	"GUIX_ENVIRONMENT", "PUREGPU_LIBRARY_PATH", "PUREGPU_LOADER", "PUREGPU_DRIVER",
}

// readSystem reads facts of the operating system. Tests replace it.
var readSystem = func() System {
	h := hostinfo.This()
	s := System{Container: h.Container(), NVIDIA: h.NVIDIA(), AMD: h.AMD()}
	s.Name, s.Kernel = h.System()
	s.noLibrary = h.NoLibrary()
	for _, n := range h.Nodes() {
		s.Nodes = append(s.Nodes, n.String())
	}
	if uid := os.Getuid(); uid >= 0 {
		groups, _ := os.Getgroups()
		s.User = fmt.Sprintf("user %d, group %d, groups %v", uid, os.Getgid(), groups)
	}
	names := slices.Clone(variables)
	for i := range probes {
		names = append(names, probes[i].env)
	}
	for _, name := range names {
		if v, set := os.LookupEnv(name); set {
			s.Variables = append(s.Variables, name+"="+v)
		}
	}
	return s
}

func (s *System) print(w io.Writer) {
	fmt.Fprintln(w, "System")
	name := s.Name
	if s.Kernel != "" {
		name += ", kernel " + s.Kernel
	}
	line(w, "system", name)
	line(w, "container", cmp.Or(s.Container, "none that tells"))
	line(w, "NVIDIA's driver in the kernel", cmp.Or(s.NVIDIA, "not loaded"))
	line(w, "AMD's driver in the kernel", cmp.Or(s.AMD, "not loaded"))
	line(w, "gpuinfo runs as", s.User)
	for _, n := range s.Nodes {
		line(w, "device node", n)
	}
	if s.Nodes == nil {
		line(w, "device nodes", "none of a GPU")
	}
	for _, v := range s.Variables {
		line(w, "variable", v)
	}
	fmt.Fprintln(w)
}

// printPage writes the results for a library's candidates, and one line for each of its devices.
func (lib *Library) printPage(w io.Writer, err error, devices []Device) {
	if !lib.Found {
		fmt.Fprintf(w, "%s: not found\n", lib.Name)
		if err != nil && !errors.Is(err, dl.ErrNotFound) {
			line(w, "error", firstLine(err))
		}
	} else {
		fmt.Fprintf(w, "%s %s\n", lib.Name, cmp.Or(lib.Version, "of unknown version"))
		taken := fmt.Sprintf("%s (%s, as %s)", lib.Path, lib.Source, lib.Asked)
		switch {
		case lib.hidden:
			taken += ": " + lib.NotReady
		case lib.NotReady != "":
			taken += ", for want of a better one: " + lib.NotReady
		}
		line(w, "taken", taken)
	}
	var names, places []string // candidates without a file, and where they were searched
	for _, a := range lib.Attempts {
		switch {
		case a.Found:
			line(w, "tried", a.String())
		case a.Source == "system loader":
			names = append(names, a.Path)
		case !slices.Contains(places, a.Path):
			places = append(places, a.Path)
		}
	}
	if names != nil {
		line(w, "not where the system's loader looks", strings.Join(names, ", "))
	}
	line(w, "not in", strings.Join(places, ", "))
	for _, status := range []string{"partial", "missing"} {
		var sets []string
		for _, s := range lib.Sets {
			if s.Status == status {
				sets = append(sets, fmt.Sprintf("%s (%s)", s.Name, s.Since))
			}
		}
		line(w, "sets "+status, strings.Join(sets, ", "))
	}
	if lib.Found && err != nil && err.Error() != lib.NotReady {
		line(w, "devices", firstLine(err))
	}
	for _, d := range devices {
		text := cmp.Or(d.Name, "without a name")
		for _, part := range []string{d.PCIAddress, d.ComputeCapability} {
			if part != "" {
				text += ", " + part
			}
		}
		if d.MIG {
			text += ", instance of MIG"
		}
		for _, e := range d.Errors {
			text += "; " + e
		}
		line(w, fmt.Sprintf("device %d", d.Index), text)
	}
	fmt.Fprintln(w)
}

// headers returns the folder of the toolkit's headers for NVRTC, or "" if there is none.
func headers(all []found) string {
	path := ""
	for _, f := range all {
		if f.lib.Package == "nvrtc" {
			path = f.lib.Path
		}
	}
	dir, _ := cudaheaders.Find("cuda_fp16.h", path)
	return dir
}

func printHeaders(w io.Writer, dir string) {
	fmt.Fprintln(w, "Headers of the CUDA toolkit")
	line(w, "cuda_fp16.h", cmp.Or(dir, "not found; programs that compile at run time need it if they include it"))
	fmt.Fprintln(w)
}

// usable reports whether there is a device without failed queries.
func usable(all []found) bool {
	return slices.ContainsFunc(all, func(f found) bool {
		return f.err == nil && slices.ContainsFunc(f.devices, func(d Device) bool { return d.Errors == nil })
	})
}

// advise returns advice, the most important first.
func advise(s *System, all []found) (say []string) {
	gpu := usable(all)
	for _, f := range all {
		p, lib := f.probe, &f.lib
		for _, a := range lib.Attempts {
			if lib.Found && lib.NotReady == "" && a.File != "" && p.vendor != "" {
				say = append(say, fmt.Sprintf("%s: %s precedes %s and does not work here: remove it, or set %s=%s. Other libraries that load this one by "+
					"its name get the file that was loaded first", p.name, a.File, lib.Path, p.env, lib.Path))
			}
		}
		switch {
		case f.err == nil:
		// Here the library finds no device because the kernel's driver is missing. The library's
		// error has no advice.
		case lib.Found && p.vendor == "AMD" && s.AMD == "" && p.absence(f.err):
		case lib.Found:
			say = append(say, p.name+": "+firstLine(f.err))
		case !errors.Is(f.err, dl.ErrNotFound):
			say = append(say, firstLine(f.err))
		case p.env != "" && secureenv.Get(p.env) != "": // the named file does not exist
			say = append(say, firstLine(f.err))
		case p.pkg == "cuda" && s.noLibrary != "":
			say = append(say, p.name+": "+s.noLibrary)
		case p.use != "" && gpu && p.belongs(all):
			say = append(say, fmt.Sprintf("%s was not found: %s", p.name, p.use))
		}
	}
	if !gpu && !slices.ContainsFunc(all, func(f found) bool { return f.probe.vendor != "" && !errors.Is(f.err, dl.ErrNotFound) }) && s.NVIDIA == "" && s.AMD == "" {
		say = append(say, "There is no sign of a GPU: neither a driver in the kernel nor a library. If the machine has a GPU, install its driver, and ROCm for an AMD GPU")
	}
	if gpu {
		say = append(say, "A GPU can be used")
	}
	return say
}

// belongs reports whether a library is for the vendor of a device that was found.
func (p *probe) belongs(all []found) bool {
	amd := p.pkg == "hiprtc" || p.name == "RCCL"
	return slices.ContainsFunc(all, func(f found) bool { return len(f.devices) > 0 && (f.probe.vendor == "AMD") == amd })
}

func printAdvice(w io.Writer, say []string) {
	fmt.Fprintln(w, "What to do")
	if say == nil {
		say = []string{"nothing: no GPU was found, and nothing is wrong"}
	}
	for i, s := range say {
		line(w, fmt.Sprint(i+1), s)
	}
}
