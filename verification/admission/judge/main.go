// Judge runs the admission code of a kube-apiserver over objects: its policy plugins, its webhook
// client and its reinvocation, with the defaults of a Pod. One process judges all cases of a run.
//
// It reads one JSON document (Request) from standard input and writes one line of JSON (Answer) for
// each case, in the order of the cases.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes/scheme"
)

// Request is what a run asks for.
type Request struct {
	// Clusters by name; a case names the one that it is sent to.
	Clusters map[string]ClusterSpec `json:"clusters"`
	Cases    []Case                 `json:"cases"`
}

// ClusterSpec is what has been applied to a cluster.
type ClusterSpec struct {
	// YAML documents: namespaces, parameters, policies, bindings, webhook configurations.
	Manifests string `json:"manifests"`
	// Where the API server finds a service, "namespace/name" to "host:port".
	Services map[string]string `json:"services"`
	// The API server's own certificate for webhooks, as a kubeconfig; none when empty.
	Kubeconfig string `json:"kubeconfig"`
}

// Case is one request to the API server.
type Case struct {
	Name        string          `json:"name"`
	Cluster     string          `json:"cluster"`
	Namespace   string          `json:"namespace"`
	Operation   string          `json:"operation"`
	Subresource string          `json:"subresource"`
	DryRun      bool            `json:"dryRun"`
	Object      json.RawMessage `json:"object"`
	OldObject   json.RawMessage `json:"oldObject"`
}

// Answer is what the API server would have stored, or its refusal.
type Answer struct {
	Name     string      `json:"name"`
	Cluster  string      `json:"cluster"`
	Object   *corev1.Pod `json:"object,omitempty"`
	Refused  string      `json:"refused,omitempty"`
	Code     int32       `json:"code,omitempty"`
	Warnings []string    `json:"warnings,omitempty"`
	// Microseconds of the mutating and of the validating half.
	MutateMicros   int64 `json:"mutateMicros"`
	ValidateMicros int64 `json:"validateMicros"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

func run() error {
	var request Request
	decoder := json.NewDecoder(bufio.NewReader(os.Stdin))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	registerPodDefaults(scheme.Scheme)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	clusters := map[string]admission.Interface{}
	for name, spec := range request.Clusters {
		chain, err := newCluster(ctx, spec)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", name, err)
		}
		clusters[name] = chain
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, asked := range request.Cases {
		chain, known := clusters[asked.Cluster]
		if !known {
			return fmt.Errorf("case %s: no cluster %q", asked.Name, asked.Cluster)
		}
		if err := out.Encode(judge(ctx, chain, asked)); err != nil {
			return err
		}
	}
	return nil
}

func judge(ctx context.Context, chain admission.Interface, asked Case) Answer {
	answer := Answer{Name: asked.Name, Cluster: asked.Cluster}
	pod, err := decodePod(asked.Object)
	var old *corev1.Pod
	if err == nil && len(asked.OldObject) > 0 {
		old, err = decodePod(asked.OldObject)
	}
	if err != nil {
		answer.Refused, answer.Code = err.Error(), 400
		return answer
	}
	recorder := &warnings{}
	attributes := attributesOf(asked, pod, old)
	objects := admission.NewObjectInterfacesFromScheme(scheme.Scheme)
	err = admit(warning.WithWarningRecorder(ctx, recorder), chain, attributes, objects, &answer)
	answer.Warnings = recorder.texts
	if err == nil {
		// A pod that a plugin has converted names no kind.
		pod.APIVersion, pod.Kind = "v1", "Pod"
		answer.Object = pod
		return answer
	}
	answer.Refused, answer.Code = err.Error(), 500
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		answer.Code = status.ErrStatus.Code
	}
	return answer
}

func admit(ctx context.Context, chain admission.Interface, a admission.Attributes, o admission.ObjectInterfaces, answer *Answer) error {
	began := time.Now()
	err := chain.(admission.MutationInterface).Admit(ctx, a, o)
	answer.MutateMicros = time.Since(began).Microseconds()
	if err != nil {
		return err
	}
	began = time.Now()
	err = chain.(admission.ValidationInterface).Validate(ctx, a, o)
	answer.ValidateMicros = time.Since(began).Microseconds()
	return err
}

func attributesOf(asked Case, pod, old *corev1.Pod) admission.Attributes {
	operation := admission.Operation(asked.Operation)
	var options runtime.Object = &metav1.CreateOptions{}
	if operation == admission.Update {
		options = &metav1.UpdateOptions{}
	}
	// An interface that holds a nil pointer is not nil.
	var before runtime.Object
	if old != nil {
		before = old
	}
	return admission.NewAttributesRecord(pod, before, corev1.SchemeGroupVersion.WithKind("Pod"), asked.Namespace, pod.Name,
		corev1.SchemeGroupVersion.WithResource("pods"), asked.Subresource, operation, options, asked.DryRun,
		&user.DefaultInfo{Name: "system:serviceaccount:kube-system:replicaset-controller"})
}

// decodePod reads a Pod as fieldValidation=Strict does and fills in its defaults.
func decodePod(text json.RawMessage) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(pod); err != nil {
		return nil, fmt.Errorf("strict decoding error: %w", err)
	}
	pod.APIVersion, pod.Kind = "v1", "Pod"
	scheme.Scheme.Default(pod)
	return pod, nil
}

// warnings collects what the API server would send back in Warning headers.
type warnings struct{ texts []string }

func (w *warnings) AddWarning(_, text string) { w.texts = append(w.texts, text) }
