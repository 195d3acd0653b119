// Package deploytest tests the recipes in the folder above. It follows container files in root
// folders made from Debian's packages. It checks the Kubernetes manifest against the types of
// Kubernetes' API. It is a separate module, so that only these tests depend on that API. "make
// test-deploy" runs them.
package deploytest
