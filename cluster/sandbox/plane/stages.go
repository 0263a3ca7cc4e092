package plane

import (
	"strings"

	node "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	pod "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

// played is a jq expression that selects pods that kwok must not mark as running. A fake kubelet in the sandbox sets
// the status of these pods. They run carrick's extension, a volume provisioner or a Deployment's nginx with volumes,
// mount an NFS volume, have an image that cannot be pulled, or mount a claim and run to completion. kwok would report a
// pod with such a claim as completed although nothing ran, and an nginx without its certificate as running.
const played = `((.spec.containers[], (.spec.initContainers // [])[]) | select(.image | test("sso71-openshift|vsphere-extensions-jvm")) | .name), ` +
	`(.spec.containers[] | select((((.args // [])[0]) == "vsphere-extension") or ([.env[]?.name] | index("PROVISIONER_NAME"))) | .name), ` +
	`(select(.metadata.labels["pod-template-hash"]) | .spec.containers[] | ` +
	`select(.image | test("nginx") and (test("ingress-nginx") | not)) | ` +
	`select(.volumeMounts[]? | .name | startswith("kube-api-access") | not) | .name), ` +
	`(.spec.volumes[]? | select(.nfs) | .name), ` +
	`(select(.spec.restartPolicy != "Always") | .spec.volumes[]? | select(.persistentVolumeClaim) | .name)`

// mine is a jq expression for a pod condition. A fake kubelet sets the condition to False until the pod's volumes are
// mounted and its network is set up. kwok does not mark the pod as running in the meantime.
const mine = `.status.conditions.[] | select( .type == "PodReadyToStartContainers" ) | .status`

// waits is a kwok stage for pods that another fake runs. It sets only the initial status and the address of the pod.
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

// stages returns kwok's default stages for nodes and pods, changed to exclude pods that another fake runs. The default
// stages would complete a Job's pods immediately.
func stages() []byte {
	return []byte(strings.Join([]string{
		node.DefaultNodeInit, readied(pod.DefaultPodReady), pod.DefaultPodComplete, pod.DefaultPodDelete, waits,
	}, "\n---\n"))
}

// readied restricts kwok's stage for ready pods to the pods that kwok runs.
func readied(stock string) string {
	const selector = "    matchExpressions:\n"
	return strings.Replace(stock, selector, selector+
		"    - {key: '"+played+"', operator: DoesNotExist}\n"+
		"    - {key: '"+mine+"', operator: NotIn, values: ['False']}\n", 1)
}
