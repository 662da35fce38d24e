package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	admv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
)

// newCluster builds the plugins in the order of a kube-apiserver.
func newCluster(ctx context.Context, spec ClusterSpec) (admission.Interface, error) {
	objects, err := readManifests(spec.Manifests)
	if err != nil {
		return nil, err
	}
	if err := checkExpressions(objects); err != nil {
		return nil, err
	}
	client := fake.NewSimpleClientset(objects...)
	dynamic := dynamicfake.NewSimpleDynamicClient(scheme.Scheme, objects...)
	shared := informers.NewSharedInformerFactory(client, 30*time.Second)
	mapper := restMapper()
	prepare := initializer.New(client, dynamic, shared, allowAll{}, utilfeature.DefaultFeatureGate,
		compatibility.DefaultBuildEffectiveVersion(), ctx.Done(), mapper)

	validating, err := validatingpolicy.NewPlugin(nil)
	if err != nil {
		return nil, err
	}
	webhook, err := mutatingwebhook.NewMutatingWebhook(webhookConfig(spec))
	if err != nil {
		return nil, err
	}
	webhook.SetServiceResolver(services(spec.Services))
	validating.SetRESTMapper(mapper)
	plugins := []admission.Interface{webhook, validating}
	for _, plugin := range plugins {
		prepare.Initialize(plugin)
		if err := admission.ValidateInitialization(plugin); err != nil {
			return nil, err
		}
	}
	shared.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())
	return admission.NewChainHandler(plugins...), nil
}

// readManifests decodes strictly and fills in what an API server fills in when it stores them.
func readManifests(text string) ([]runtime.Object, error) {
	decoder := kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		kjson.SerializerOptions{Yaml: true, Strict: true})
	reader := yamlutil.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	var objects []runtime.Object
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(string(document)) == "" {
			continue
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		fillDefaults(object)
		objects = append(objects, object)
	}
}

func fillDefaults(object runtime.Object) {
	switch o := object.(type) {
	case *corev1.Namespace:
		if o.Labels == nil {
			o.Labels = map[string]string{}
		}
		o.Labels["kubernetes.io/metadata.name"] = o.Name
	case *admv1.ValidatingAdmissionPolicy:
		fillMatch(o.Spec.MatchConstraints)
	case *admv1.ValidatingAdmissionPolicyBinding:
		fillMatch(o.Spec.MatchResources)
	case *admv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			fillWebhook(&o.Webhooks[i])
		}
	}
}

func fillMatch(match *admv1.MatchResources) {
	if match == nil {
		return
	}
	setDefault(&match.NamespaceSelector, emptySelector)
	setDefault(&match.ObjectSelector, emptySelector)
	setDefault(&match.MatchPolicy, admv1.Equivalent)
	for i := range match.ResourceRules {
		setDefault(&match.ResourceRules[i].Scope, admv1.AllScopes)
	}
	for i := range match.ExcludeResourceRules {
		setDefault(&match.ExcludeResourceRules[i].Scope, admv1.AllScopes)
	}
}

func fillWebhook(webhook *admv1.MutatingWebhook) {
	setDefault(&webhook.NamespaceSelector, emptySelector)
	setDefault(&webhook.ObjectSelector, emptySelector)
	setDefault(&webhook.MatchPolicy, admv1.Equivalent)
	setDefault(&webhook.FailurePolicy, admv1.Fail)
	setDefault(&webhook.ReinvocationPolicy, admv1.NeverReinvocationPolicy)
	setDefault(&webhook.TimeoutSeconds, 10)
	for i := range webhook.Rules {
		setDefault(&webhook.Rules[i].Scope, admv1.AllScopes)
	}
	if service := webhook.ClientConfig.Service; service != nil {
		setDefault(&service.Port, 443)
	}
}

func restMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return mapper
}

func webhookConfig(spec ClusterSpec) io.Reader {
	if spec.Kubeconfig == "" {
		return nil
	}
	return strings.NewReader(fmt.Sprintf(
		"apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\nkubeConfigFile: %q\n", spec.Kubeconfig))
}

// services resolves the service of a webhook as the aggregator of an API server does.
type services map[string]string

func (s services) ResolveEndpoint(namespace, name string, _ int32) (*url.URL, error) {
	host, known := s[namespace+"/"+name]
	if !known {
		return nil, fmt.Errorf("service %q not found in namespace %q", name, namespace)
	}
	return &url.URL{Scheme: "https", Host: host}, nil
}

type allowAll struct{}

func (allowAll) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}
