package main

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The defaults of a Pod are part of Kubernetes' own tree, which no library package holds; these are
// its rules for the fields that a merchant's pod has. They are applied to the object of a case, after
// each mutation, and to the pods that other ways of injection made: a difference between two ways
// cannot come from here.

var emptySelector = metav1.LabelSelector{}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func setEmpty[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

func setZero(field *int32, value int32) {
	if *field == 0 {
		*field = value
	}
}

func registerPodDefaults(target *runtime.Scheme) {
	target.AddTypeDefaultingFunc(&corev1.Pod{}, func(object any) { setPodDefaults(object.(*corev1.Pod)) })
}

func setPodDefaults(pod *corev1.Pod) {
	spec := &pod.Spec
	setDefault(&spec.EnableServiceLinks, true)
	setDefault(&spec.TerminationGracePeriodSeconds, 30)
	setDefault(&spec.SecurityContext, corev1.PodSecurityContext{})
	setEmpty(&spec.DNSPolicy, corev1.DNSClusterFirst)
	setEmpty(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	setEmpty(&spec.SchedulerName, corev1.DefaultSchedulerName)
	for i := range spec.Volumes {
		setVolumeDefaults(&spec.Volumes[i])
	}
	for i := range spec.InitContainers {
		setContainerDefaults(&spec.InitContainers[i], spec.HostNetwork)
	}
	for i := range spec.Containers {
		setContainerDefaults(&spec.Containers[i], spec.HostNetwork)
	}
	for i := range spec.EphemeralContainers {
		container := corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		setContainerDefaults(&container, false)
		spec.EphemeralContainers[i].EphemeralContainerCommon = corev1.EphemeralContainerCommon(container)
	}
}

func setVolumeDefaults(volume *corev1.Volume) {
	if volume.VolumeSource == (corev1.VolumeSource{}) {
		volume.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if source := volume.Secret; source != nil {
		setDefault(&source.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if source := volume.ConfigMap; source != nil {
		setDefault(&source.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if source := volume.HostPath; source != nil {
		setDefault(&source.Type, corev1.HostPathUnset)
	}
	if source := volume.DownwardAPI; source != nil {
		setDefault(&source.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		setFieldDefaults(source.Items)
	}
	if source := volume.Projected; source != nil {
		setDefault(&source.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
		for i := range source.Sources {
			if token := source.Sources[i].ServiceAccountToken; token != nil {
				setDefault(&token.ExpirationSeconds, 3600)
			}
			if downward := source.Sources[i].DownwardAPI; downward != nil {
				setFieldDefaults(downward.Items)
			}
		}
	}
}

func setFieldDefaults(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		if field := items[i].FieldRef; field != nil {
			setEmpty(&field.APIVersion, "v1")
		}
	}
}

func setContainerDefaults(container *corev1.Container, hostNetwork bool) {
	setEmpty(&container.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setEmpty(&container.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	setEmpty(&container.ImagePullPolicy, pullPolicy(container.Image))
	for i := range container.Ports {
		port := &container.Ports[i]
		setEmpty(&port.Protocol, corev1.ProtocolTCP)
		if hostNetwork {
			setZero(&port.HostPort, port.ContainerPort)
		}
	}
	for i := range container.Env {
		if from := container.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			setEmpty(&from.FieldRef.APIVersion, "v1")
		}
	}
	// A limit without a request is the request.
	for name, limit := range container.Resources.Limits {
		if container.Resources.Requests == nil {
			container.Resources.Requests = corev1.ResourceList{}
		}
		if _, named := container.Resources.Requests[name]; !named {
			container.Resources.Requests[name] = limit.DeepCopy()
		}
	}
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe, container.StartupProbe} {
		setProbeDefaults(probe)
	}
	if lifecycle := container.Lifecycle; lifecycle != nil {
		for _, hook := range []*corev1.LifecycleHandler{lifecycle.PostStart, lifecycle.PreStop} {
			if hook != nil {
				setHTTPDefaults(hook.HTTPGet)
			}
		}
	}
}

// pullPolicy reads the tag as the reference parser does: after the last colon that follows the last
// slash, and "latest" without one; a digest is no tag.
func pullPolicy(image string) corev1.PullPolicy {
	name, _, digest := strings.Cut(image, "@")
	last := name[strings.LastIndex(name, "/")+1:]
	_, tag, tagged := strings.Cut(last, ":")
	if tag == "latest" || (!tagged && !digest) {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func setProbeDefaults(probe *corev1.Probe) {
	if probe == nil {
		return
	}
	setZero(&probe.TimeoutSeconds, 1)
	setZero(&probe.PeriodSeconds, 10)
	setZero(&probe.SuccessThreshold, 1)
	setZero(&probe.FailureThreshold, 3)
	setHTTPDefaults(probe.HTTPGet)
	if probe.GRPC != nil {
		setDefault(&probe.GRPC.Service, "")
	}
}

func setHTTPDefaults(get *corev1.HTTPGetAction) {
	if get == nil {
		return
	}
	setEmpty(&get.Path, "/")
	setEmpty(&get.Scheme, corev1.URISchemeHTTP)
}
