package plane

import (
	"strings"

	node "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	pod "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

// played finds what in a pod says that kwok must not call it running: a stand-in is
// asked whether it does. That is a container that runs carrick's extension or a
// provisioner of volumes, a volume of NFS, a claim of a pod that is to come to an
// end (nobody would believe that it did its work), and an image that nobody has.
const played = `((.spec.containers[], (.spec.initContainers // [])[]) | select(.image | test("sso71-openshift|vsphere-extensions-jvm")) | .name), ` +
	`(.spec.containers[] | select((((.args // [])[0]) == "vsphere-extension") or ([.env[]?.name] | index("PROVISIONER_NAME"))) | .name), ` +
	`(.spec.volumes[]? | select(.nfs) | .name), ` +
	`(select(.spec.restartPolicy != "Always") | .spec.volumes[]? | select(.persistentVolumeClaim) | .name)`

// mine is the condition by which whoever plays a pod's kubelet keeps kwok away: its
// volumes are not mounted, or its network is not there.
const mine = `.status.conditions.[] | select( .type == "PodReadyToStartContainers" ) | .status`

// waits is what kwok says of a pod that is played by somebody else: that it was seen,
// and has an address.
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

// stages is what kwok makes of nodes and pods: of its own stock, but for the pods that
// stand-ins play. A Job's pods succeed at once although nothing ran.
func stages() []byte {
	return []byte(strings.Join([]string{
		node.DefaultNodeInit, readied(pod.DefaultPodReady), pod.DefaultPodComplete, pod.DefaultPodDelete, waits,
	}, "\n---\n"))
}

// readied is kwok's stage that calls a pod ready, for those that are its own.
func readied(stock string) string {
	const selector = "    matchExpressions:\n"
	return strings.Replace(stock, selector, selector+
		"    - {key: '"+played+"', operator: DoesNotExist}\n"+
		"    - {key: '"+mine+"', operator: NotIn, values: ['False']}\n", 1)
}
