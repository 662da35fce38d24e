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
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi/openapitest"
)

// newCluster builds the plugins in the order of a kube-apiserver: policies mutate before webhooks.
func newCluster(ctx context.Context, spec ClusterSpec) (admission.Interface, error) {
	objects, err := readManifests(spec.Manifests)
	if err != nil {
		return nil, err
	}
	if err := checkExpressions(objects); err != nil {
		return nil, err
	}
	client := withSchemas{fake.NewSimpleClientset(objects...)}
	dynamic := dynamicfake.NewSimpleDynamicClient(scheme.Scheme, objects...)
	shared := informers.NewSharedInformerFactory(client, 30*time.Second)
	mapper := restMapper()
	prepare := initializer.New(client, dynamic, shared, allowAll{}, utilfeature.DefaultFeatureGate,
		compatibility.DefaultBuildEffectiveVersion(), ctx.Done(), mapper)

	mutating, err := mutatingpolicy.NewPlugin(nil)
	if err != nil {
		return nil, err
	}
	validating, err := validatingpolicy.NewPlugin(nil)
	if err != nil {
		return nil, err
	}
	webhook, err := mutatingwebhook.NewMutatingWebhook(webhookConfig(spec))
	if err != nil {
		return nil, err
	}
	webhook.SetServiceResolver(services(spec.Services))
	mutating.SetRESTMapper(mapper)
	validating.SetRESTMapper(mapper)
	plugins := []admission.Interface{mutating, webhook, validating}
	for _, plugin := range plugins {
		prepare.Initialize(plugin)
		if err := admission.ValidateInitialization(plugin); err != nil {
			return nil, err
		}
	}
	shared.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())
	return &reinvoker{admission.NewChainHandler(plugins...)}, nil
}

// reinvoker asks the mutating plugins a second time when one of them demands it; that of the
// apiserver package is not exported.
type reinvoker struct{ chain admission.Interface }

func (r *reinvoker) Handles(operation admission.Operation) bool { return r.chain.Handles(operation) }

func (r *reinvoker) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	chain := r.chain.(admission.MutationInterface)
	if err := chain.Admit(ctx, a, o); err != nil {
		return err
	}
	reinvocation := a.GetReinvocationContext()
	if !reinvocation.ShouldReinvoke() {
		return nil
	}
	reinvocation.SetIsReinvoke()
	return chain.Admit(ctx, a, o)
}

func (r *reinvoker) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return r.chain.(admission.ValidationInterface).Validate(ctx, a, o)
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
	case *admv1.MutatingAdmissionPolicy:
		fillMatch(o.Spec.MatchConstraints)
	case *admv1.MutatingAdmissionPolicyBinding:
		fillMatch(o.Spec.MatchResources)
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

// withSchemas answers the discovery of schemas, which the fake client does not.
type withSchemas struct{ kubernetes.Interface }

func (c withSchemas) Discovery() discovery.DiscoveryInterface {
	return embeddedSchemas{c.Interface.Discovery()}
}

type embeddedSchemas struct{ discovery.DiscoveryInterface }

func (embeddedSchemas) OpenAPIV3() openapi.Client { return openapitest.NewEmbeddedFileClient() }
