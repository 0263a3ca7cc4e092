package stepstest

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps"
)

// counted is a FlowSchema that delays no requests. The API server has a metric with the number of requests per
// FlowSchema.
const counted = `
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: %[1]s}
spec:
  matchingPrecedence: 2
  priorityLevelConfiguration: {name: exempt}
  rules:
    - subjects:
        - {kind: User, user: {name: %[1]s}}
        - {kind: Group, group: {name: "system:serviceaccounts:%[2]s"}}
      resourceRules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"]}]
      nonResourceRules: [{verbs: ["*"], nonResourceURLs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`

// requests creates an admin on a side, to be impersonated. The returned function returns how many requests from that
// admin and from the ServiceAccounts of the namespace the API server has counted so far.
func requests(tb testing.TB, box *clustertest.Sandbox, side steps.Side, admin, namespace string) func() int {
	tb.Helper()
	on := string(side)
	box.Run(tb, on, fmt.Sprintf(counted, admin, namespace), "apply", "-f", "-")
	box.Cleanup(tb, on, "delete", "flowschema,clusterrolebinding", admin)
	box.Run(tb, on, "", "wait", "--for=condition=Dangling=False", "--timeout=300s", "flowschema/"+admin)
	line := regexp.MustCompile(
		`(?m)^apiserver_flowcontrol_dispatched_requests_total\{[^}]*flow_schema="` + admin + `"[^}]*\} (\S+)$`,
	)
	return func() int {
		n := 0
		for _, m := range line.FindAllStringSubmatch(box.Run(tb, on, "", "get", "--raw", "/metrics"), -1) {
			f, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				tb.Fatal(err)
			}
			n += int(f)
		}
		return n
	}
}
