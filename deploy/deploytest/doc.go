// Package deploytest proves the recipes of the folder above: container files, in root folders made
// of Debian's packages, and the Kubernetes manifest, against the types of Kubernetes' API. It is a
// module of its own, so that only these tests need that API. "make test-deploy" runs them.
package deploytest
