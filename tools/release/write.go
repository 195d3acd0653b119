package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// write puts the files of the release into a folder.
func (r *release) write(w io.Writer, dir string) error {
	base := path.Base(r.path) + "-" + r.version
	zipSum := sha256.Sum256(r.zip)
	bom, err := r.billOfMaterials(hex.EncodeToString(zipSum[:]))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, f := range []struct {
		name string
		text []byte
	}{{base + ".zip", r.zip}, {base + ".cdx.json", bom}} {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.text), f.name)
		if err := os.WriteFile(filepath.Join(dir, f.name), f.text, 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(w, "wrote %s:\n%s", dir, sums.String())
	fmt.Fprintf(w, "next: git tag -a %s, git push origin %s, and publish these files with it\n", r.version, r.version)
	return nil
}

// A component is an entry of a bill of materials in the format CycloneDX 1.5.
type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Scope      string     `json:"scope,omitempty"` // "excluded": tests contain it, and nothing that is shipped
	Hashes     []hash     `json:"hashes,omitempty"`
	Licences   []any      `json:"licenses"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// billOfMaterials lists the module and its dependencies, in JSON.
func (r *release) billOfMaterials(zipSum string) ([]byte, error) {
	purl := "pkg:golang/" + r.path + "@" + r.version
	var bom struct {
		Format   string `json:"bomFormat"`
		Spec     string `json:"specVersion"`
		Version  int    `json:"version"`
		Metadata struct {
			Component component `json:"component"`
		} `json:"metadata"`
		Components []component `json:"components"`
	}
	bom.Format, bom.Spec, bom.Version = "CycloneDX", "1.5", 1
	bom.Metadata.Component = component{
		Type: "library", Ref: purl, Name: r.path, Version: r.version, PURL: purl,
		Hashes: []hash{{"SHA-256", zipSum}}, Licences: licenceChoice("Apache-2.0"),
	}
	for _, l := range r.bill {
		c := component{Type: "library", Ref: l.purl, Name: l.name, Version: l.version, PURL: l.purl, Licences: licenceChoice(l.licence)}
		if l.sum != "" {
			c.Properties = []property{{"go.sum", l.sum}}
		}
		if l.test {
			c.Scope = "excluded"
		}
		bom.Components = append(bom.Components, c)
	}
	text, err := json.MarshalIndent(bom, "", "  ")
	return append(text, '\n'), err
}

// licenceChoice returns CycloneDX's form of a licence: a name, or an expression if there are
// several names.
func licenceChoice(name string) []any {
	if strings.Contains(name, " ") {
		return []any{map[string]string{"expression": name}}
	}
	return []any{map[string]any{"license": map[string]string{"id": name}}}
}
