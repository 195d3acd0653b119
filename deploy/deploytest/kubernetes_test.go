package deploytest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/puregpu/puregpu/runtime/rendezvous"
)

// decode reads the documents of a manifest into the types of Kubernetes' API. An unknown or
// repeated field is an error.
func decode(text string) (deployments []appsv1.Deployment, services []corev1.Service, jobs []batchv1.Job, err error) {
	for i, doc := range strings.Split(text, "\n---\n") {
		fail := func(err error) error { return fmt.Errorf("document %d: %w", i+1, err) }
		data, err := yaml.YAMLToJSONStrict([]byte(doc))
		if err != nil {
			return nil, nil, nil, fail(err)
		}
		var kind metav1.TypeMeta
		if err := json.UnmarshalCaseSensitivePreserveInts(data, &kind); err != nil {
			return nil, nil, nil, fail(err)
		}
		var to any
		switch k := kind.APIVersion + " " + kind.Kind; k {
		case "apps/v1 Deployment":
			deployments = append(deployments, appsv1.Deployment{})
			to = &deployments[len(deployments)-1]
		case "v1 Service":
			services = append(services, corev1.Service{})
			to = &services[len(services)-1]
		case "batch/v1 Job":
			jobs = append(jobs, batchv1.Job{})
			to = &jobs[len(jobs)-1]
		default:
			return nil, nil, nil, fail(fmt.Errorf("the test knows no %q", k))
		}
		strict, err := json.UnmarshalStrict(data, to)
		if err := errors.Join(append(strict, err)...); err != nil {
			return nil, nil, nil, fail(err)
		}
	}
	return deployments, services, jobs, nil
}

// onePod checks what every pod must have: a GPU from the device plugin, a toleration for nodes with
// GPUs, and a program without privileges.
func onePod(t *testing.T, what string, pod corev1.PodSpec) corev1.Container {
	t.Helper()
	if len(pod.Containers) != 1 {
		t.Fatalf("%s has %d containers", what, len(pod.Containers))
	}
	c := pod.Containers[0]
	if gpus := c.Resources.Limits["nvidia.com/gpu"]; gpus.Value() != 1 {
		t.Errorf("%s: %s GPUs", what, gpus.String())
	}
	if !slices.ContainsFunc(pod.Tolerations, func(x corev1.Toleration) bool {
		return x.Key == "nvidia.com/gpu" && x.Operator == corev1.TolerationOpExists
	}) {
		t.Errorf("%s does not tolerate the taint of nodes with GPUs", what)
	}
	if s := c.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		t.Errorf("%s runs with rights that it does not need: %+v", what, s)
	}
	for _, m := range c.VolumeMounts {
		if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
			t.Errorf("%s mounts %s, which is no volume", what, m.Name)
		}
	}
	return c
}

// TestManifest decodes the manifest strictly, and checks requirements that the API's types do not
// express.
func TestManifest(t *testing.T) {
	text, err := os.ReadFile("../kubernetes.yaml")
	check(t, err)
	deployments, services, jobs, err := decode(string(text))
	if err != nil || len(deployments) != 1 || len(services) != 1 || len(jobs) != 1 {
		t.Fatalf("%d deployments, %d services, %d jobs, %v", len(deployments), len(services), len(jobs), err)
	}
	d := deployments[0]
	c := onePod(t, "the deployment", d.Spec.Template.Spec)
	for key, value := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[key] != value {
			t.Errorf("the deployment selects %s=%s, which its pods do not have", key, value)
		}
	}
	if p := c.ReadinessProbe.HTTPGet; len(c.Ports) != 1 || p.Port.String() != c.Ports[0].Name || p.Path != "/ready" || c.Args[1] != fmt.Sprint(":", c.Ports[0].ContainerPort) {
		t.Errorf("the probe asks %+v of ports %+v, and the program has %v", p, c.Ports, c.Args)
	}
	if p := c.StartupProbe; p == nil || p.HTTPGet.Path != "/ready" || p.HTTPGet.Port != c.ReadinessProbe.HTTPGet.Port || p.PeriodSeconds*p.FailureThreshold < 600 {
		t.Errorf("a server that loads a model for ten minutes is restarted: %+v", p)
	}
	if p := c.LivenessProbe; p == nil || p.HTTPGet.Path != "/ready" || p.HTTPGet.Port != c.ReadinessProbe.HTTPGet.Port {
		t.Errorf("a server whose device is lost is not restarted: %+v", p)
	}

	job, service := jobs[0], services[0]
	c = onePod(t, "the job", job.Spec.Template.Spec)
	if service.Name != job.Spec.Template.Spec.Subdomain || service.Spec.ClusterIP != corev1.ClusterIPNone || service.Spec.Selector["job-name"] != job.Name || !service.Spec.PublishNotReadyAddresses {
		t.Errorf("the service %+v does not name the pods of job %s", service.Spec, job.Name)
	}
	if *job.Spec.CompletionMode != batchv1.IndexedCompletion || *job.Spec.Completions != *job.Spec.Parallelism {
		t.Errorf("the job does not run all ranks at a time: %+v", job.Spec)
	}
	for rank := range int(*job.Spec.Completions) {
		env := map[string]string{"JOB_COMPLETION_INDEX": fmt.Sprint(rank)}
		for _, v := range c.Env {
			env[v.Name] = v.Value
		}
		place, err := rendezvous.FromEnv(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		if err != nil || place.Rank != rank || place.Count != int(*job.Spec.Completions) {
			t.Errorf("rank %d is told to be %+v, %v", rank, place, err)
		}
		if env["MASTER_ADDR"] != job.Name+"-0."+service.Name || env["MASTER_PORT"] == "" {
			t.Errorf("rank %d finds rank 0 at %s:%s", rank, env["MASTER_ADDR"], env["MASTER_PORT"])
		}
	}
}

// TestStrict checks that decode refuses mistakes that a lenient decoder accepts.
func TestStrict(t *testing.T) {
	text, err := os.ReadFile("../kubernetes.yaml")
	check(t, err)
	for old, mistake := range map[string]string{
		"replicas: 1\n":                "replica: 1\n",
		"runAsNonRoot: true\n":         "runAsNonroot: true\n",
		`nvidia.com/gpu: "1"`:          `nvidia.com/gpu: "one"`,
		"containerPort: 8080\n":        "containerPort: http\n",
		"kind: Job\n":                  "kind: Jobs\n",
		"  completions: 4\n":           "  completions: 4\n  completions: 4\n",
		"apiVersion: batch/v1\n":       "apiVersion: batch/v2\n",
		"              path: /ready\n": "\t\tpath: /ready\n",
	} {
		wrong := strings.Replace(string(text), old, mistake, 1)
		if wrong == string(text) {
			t.Errorf("the manifest has no %q", old)
		} else if _, _, _, err := decode(wrong); err == nil {
			t.Errorf("%q in place of %q is taken", mistake, old)
		}
	}
}
