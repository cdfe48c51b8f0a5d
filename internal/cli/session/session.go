// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package session has what every command of the plugin works with: the streams, the flags that select the cluster, the
// clients made from them, and the messages of failures.
//
// The rule: a command asks the API server only for what it needs. Kinds and resources are known without discovery.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the login methods of kubectl
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// FieldManager is the field manager of the plugin's writes, unless a flag names another one. It does not begin with kubectl:
// Flux takes over the fields of such managers, and removes those that its manifest has not.
const FieldManager = "rollset-cli"

// Session is one run of the plugin.
type Session struct {
	genericiooptions.IOStreams

	// Clock is the only clock.
	Clock clock.WithTicker
	// Raw is the standard output for what is not text from the cluster, such as colors and the output of programs. Control
	// characters do not pass the other streams.
	Raw io.Writer

	flags        *genericclioptions.ConfigFlags
	fieldManager string
}

// New returns a session with streams and a clock.
func New(streams genericiooptions.IOStreams, c clock.WithTicker) *Session {
	flags := genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c.QPS = -1 // no limit: the requests are few and short, or many, as in adopt, and the API server has limits of its own
		c.WarningHandlerWithContext = rest.NoWarnings{}
		return c
	})
	raw := streams.Out
	streams.Out, streams.ErrOut = &plainWriter{to: streams.Out}, &plainWriter{to: streams.ErrOut}
	return &Session{IOStreams: streams, Clock: c, Raw: raw, flags: flags, fieldManager: FieldManager}
}

// AddFlags adds the flags that all commands have.
func (s *Session) AddFlags(flags *pflag.FlagSet) {
	s.flags.AddFlags(flags)
	flags.StringVar(&s.fieldManager, "field-manager", FieldManager, "Name under which the API server records the fields that are written")
}

// Flags returns the flags that select the cluster, for helpers that make their own clients.
func (s *Session) Flags() *genericclioptions.ConfigFlags { return s.flags }

// Namespace returns the namespace that the command works in.
func (s *Session) Namespace() (string, error) {
	namespace, _, err := s.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("find the namespace: %w", err)
	}
	return namespace, nil
}

// RESTConfig returns the configuration to reach the API server.
func (s *Session) RESTConfig() (*rest.Config, error) {
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	return config, nil
}

// Client returns a client for RollSets and related objects. The API server refuses writes with unknown fields.
func (s *Session) Client() (client.WithWatch, error) {
	config, err := s.RESTConfig()
	if err != nil {
		return nil, err
	}
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	options := client.Options{Scheme: scheme, Mapper: mapper()}
	c, err := client.New(s.impatient(config), options)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	watcher, err := client.NewWithWatch(s.forStreams(config), options)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	strict := client.WithFieldOwner(client.WithFieldValidation(c, metav1.FieldValidationStrict), s.fieldManager)
	return watching{Client: strict, watcher: watcher}, nil
}

// Clientset returns a client for logs, which may go on for as long as they like.
func (s *Session) Clientset() (kubernetes.Interface, error) {
	config, err := s.RESTConfig()
	if err != nil {
		return nil, err
	}
	set, err := kubernetes.NewForConfig(s.forStreams(config))
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return set, nil
}

// Scheme returns a scheme with the kinds that commands read and write.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	err := errors.Join(
		corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), policyv1.AddToScheme(scheme), storagev1.AddToScheme(scheme),
		autoscalingv2.AddToScheme(scheme), v1beta1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("build the scheme: %w", err)
	}
	return scheme, nil
}

// CloneSet returns the kind of OpenKruise, in the version that this plugin reads.
func CloneSet() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}
}

// HorizontalPodAutoscaler returns the kind of Kubernetes' own autoscaler.
func HorizontalPodAutoscaler() schema.GroupVersionKind {
	return autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")
}

// ScaledObject returns the kind by which KEDA scales a workload.
func ScaledObject() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}
}

// VerticalPodAutoscaler returns the kind of the autoscaler of resources.
func VerticalPodAutoscaler() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}
}

// CustomResourceDefinition returns the kind of definitions of custom resources.
func CustomResourceDefinition() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
}

// mapper knows the resources of the kinds, so that no command must ask for them.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	add := func(gv schema.GroupVersion, scope meta.RESTScope, kinds ...string) {
		for _, kind := range kinds {
			m.Add(gv.WithKind(kind), scope)
		}
	}
	add(v1beta1.GroupVersion, meta.RESTScopeNamespace, "RollSet")
	add(corev1.SchemeGroupVersion, meta.RESTScopeNamespace, "Pod", "PersistentVolumeClaim", "ResourceQuota", "Event", "Service", "ConfigMap")
	add(corev1.SchemeGroupVersion, meta.RESTScopeRoot, "Node", "Namespace")
	add(appsv1.SchemeGroupVersion, meta.RESTScopeNamespace, "ControllerRevision", "StatefulSet", "Deployment", "ReplicaSet")
	add(policyv1.SchemeGroupVersion, meta.RESTScopeNamespace, "PodDisruptionBudget")
	for _, kind := range []schema.GroupVersionKind{HorizontalPodAutoscaler(), ScaledObject(), VerticalPodAutoscaler(), CloneSet()} {
		add(kind.GroupVersion(), meta.RESTScopeNamespace, kind.Kind)
	}
	add(storagev1.SchemeGroupVersion, meta.RESTScopeRoot, "StorageClass")
	add(CustomResourceDefinition().GroupVersion(), meta.RESTScopeRoot, CustomResourceDefinition().Kind)
	return m
}

// watching is a client whose writes are wrapped, and that can watch.
type watching struct {
	client.Client

	watcher client.WithWatch
}

// Watch watches objects of a kind.
func (w watching) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	return w.watcher.Watch(ctx, list, options...)
}
