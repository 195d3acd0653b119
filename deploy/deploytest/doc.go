// Package deploytest tests the recipes in the folder above. The tests carry out the container files
// in root folders made from Debian's packages. They check the Kubernetes manifest against the types
// of the Kubernetes API. The package is a separate module, so that only these tests depend on that
// API. "make test-deploy" runs them.
package deploytest
