package plane

import (
	"strings"

	node "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	pod "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

// played selects pods that kwok must not mark as running, because a stand-in decides whether they run: pods with a
// container that runs carrick's extension or a volume provisioner, with an NFS volume, with a claim if the pod must
// complete (otherwise it would appear to have done its work), or with an image that cannot be pulled.
const played = `((.spec.containers[], (.spec.initContainers // [])[]) | select(.image | test("sso71-openshift|vsphere-extensions-jvm")) | .name), ` +
	`(.spec.containers[] | select((((.args // [])[0]) == "vsphere-extension") or ([.env[]?.name] | index("PROVISIONER_NAME"))) | .name), ` +
	`(.spec.volumes[]? | select(.nfs) | .name), ` +
	`(select(.spec.restartPolicy != "Always") | .spec.volumes[]? | select(.persistentVolumeClaim) | .name)`

// mine is the condition with which a stand-in of a pod's kubelet keeps kwok away: the pod's volumes are not mounted, or
// its network is not set up.
const mine = `.status.conditions.[] | select( .type == "PodReadyToStartContainers" ) | .status`

// waits is kwok's stage for a pod that a stand-in handles: it acknowledges the pod and gives it an address.
const waits = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-waits}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
      - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
      - {key: .status.podIP, operator: DoesNotExist}
      - {key: '` + played + `', operator: Exists}
  next:
    statusTemplate: |
      {{ $now := Now }}
      phase: Pending
      startTime: {{ $now | Quote }}
      conditions:
        - {type: PodReadyToStartContainers, status: "False", lastTransitionTime: {{ $now | Quote }}}
        - {type: Initialized, status: "False", lastTransitionTime: {{ $now | Quote }}}
        - {type: Ready, status: "False", lastTransitionTime: {{ $now | Quote }}}
        - {type: ContainersReady, status: "False", lastTransitionTime: {{ $now | Quote }}}
      containerStatuses:
      {{ range .spec.containers }}
        - {name: {{ .name | Quote }}, image: {{ .image | Quote }}, ready: false, restartCount: 0, state: {waiting: {reason: ContainerCreating}}}
      {{ end }}
      {{ with NodeIPsWith .spec.nodeName }}
      hostIP: {{ index . 0 | Quote }}
      hostIPs: [{ip: {{ index . 0 | Quote }}}]
      {{ end }}
      {{ with PodIPsWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) }}
      podIP: {{ index . 0 | Quote }}
      podIPs: [{ip: {{ index . 0 | Quote }}}]
      {{ end }}
`

// stages returns kwok's stages of nodes and pods: its default stages, except for the pods that stand-ins handle. A
// Job's pods succeed immediately although nothing ran.
func stages() []byte {
	return []byte(strings.Join([]string{
		node.DefaultNodeInit, readied(pod.DefaultPodReady), pod.DefaultPodComplete, pod.DefaultPodDelete, waits,
	}, "\n---\n"))
}

// readied returns kwok's stage that marks a pod ready, restricted to the pods that kwok handles.
func readied(stock string) string {
	const selector = "    matchExpressions:\n"
	return strings.Replace(stock, selector, selector+
		"    - {key: '"+played+"', operator: DoesNotExist}\n"+
		"    - {key: '"+mine+"', operator: NotIn, values: ['False']}\n", 1)
}
