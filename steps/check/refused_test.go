package check

import (
	"strings"
	"testing"
)

// The messages are copied from API servers.
func TestRefuserIsReadOffItsWords(t *testing.T) {
	for _, tc := range []struct {
		why  string
		by   RefusedBy
		name string
		fix  string
	}{
		{`violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`, ByLevel, "restricted:latest", ""},
		{
			"exceeded quota: pods, requested: pods=1, used: pods=3, limited: pods=3", ByQuota, "pods",
			"describe resourcequota pods ",
		},
		{"failed quota: cpu: must specify limits.cpu for: job", ByQuota, "cpu", "describe resourcequota cpu "},
		{"maximum memory usage per Container is 1Gi, but limit is 2Gi", ByLimits, "", "describe limitrange"},
		{
			`failed calling webhook "pods.example.org": failed to call webhook: Post "https://a.b.svc:443/?timeout=10s": refused`,
			ByWebhook, "pods.example.org", "grep -F pods.example.org ",
		},
		{
			`admission webhook "validate.kyverno.svc-fail" denied the request: no`, ByWebhook, "validate.kyverno.svc-fail",
			"namespaceSelector",
		},
		{
			"ValidatingAdmissionPolicy 'ids' with binding 'ids' denied request: no", ByPolicy, "ids",
			"get validatingadmissionpolicy ids ",
		},
		{"spec.containers[0].image: Required value", ByOther, "", ""},
	} {
		by, name := Refuser(tc.why)
		fix := RefusedFix("kubectl", "ns", tc.why)
		if by != tc.by || name != tc.name || !strings.Contains(fix, tc.fix) || (tc.fix == "") != (fix == "") {
			t.Errorf("%s: %v %q, fix %q", tc.why, by, name, fix)
		}
	}
}
