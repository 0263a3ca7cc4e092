package check

import (
	"regexp"
	"strings"
)

// RefusedBy is what of an API server refused an object.
type RefusedBy int

// What refuses objects. ByOther is all that its words do not tell.
const (
	ByOther   RefusedBy = iota
	ByLevel             // the namespace's level of pod security
	ByQuota             // a ResourceQuota
	ByLimits            // a LimitRange
	ByWebhook           // a webhook that denied it, or that did not answer
	ByPolicy            // a ValidatingAdmissionPolicy
)

// Refuser reads off a refusal what refused, and its name where the words tell it
// (kubernetes/kubernetes: plugin/pkg/admission/resourcequota/controller.go,
// plugin/pkg/admission/limitranger/admission.go,
// staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go and
// staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go).
func Refuser(why string) (by RefusedBy, name string) {
	for _, r := range refusers {
		if m := r.says.FindStringSubmatch(why); m != nil {
			return r.by, m[1]
		}
	}
	// "maximum cpu usage per Container is 1, but limit is 2", "cpu max limit to request ratio per Pod is 2, but …"
	if strings.Contains(why, " usage per ") || strings.Contains(why, "limit to request ratio per ") {
		return ByLimits, ""
	}
	return ByOther, ""
}

// OverLimit reports whether a ResourceQuota or a LimitRange refused an object: for what it asks for, not for what it
// is.
func OverLimit(why string) bool {
	by, _ := Refuser(why)
	return by == ByQuota || by == ByLimits
}

// ExceededQuota reads off a refusal the ResourceQuota and its limits that would be exceeded:
// "requests.storage=0,pods=4".
func ExceededQuota(why string) (name, limits string, is bool) {
	m := exceeded.FindStringSubmatch(why)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

var exceeded = regexp.MustCompile(`exceeded quota: ([a-z0-9.-]+), .*limited: ([A-Za-z0-9.=,/_ -]+)$`)

var refusers = []struct {
	by   RefusedBy
	says *regexp.Regexp
}{
	{ByWebhook, regexp.MustCompile(`failed calling webhook "([^"]*)"`)}, // first: what webhooks and policies say is theirs
	{ByWebhook, regexp.MustCompile(`admission webhook "([^"]*)" denied`)},
	{ByPolicy, regexp.MustCompile(`ValidatingAdmissionPolicy '([^']*)'`)},
	{ByLevel, regexp.MustCompile(`violates PodSecurity "([^"]*)"`)},
	{ByQuota, regexp.MustCompile(`exceeded quota: ([^, ]+)`)},
	{ByQuota, regexp.MustCompile(`failed quota: ([^: ]+)`)},
}

// objectName is what an object can be called. The words of a refusal are a stranger's.
var objectName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

// RefusedFix is how to see what refused objects in a namespace; "" where a level of pod security did, or the words do
// not tell it. kubectl is the command with its context.
func RefusedFix(kubectl, namespace, why string) string {
	by, name := Refuser(why)
	if name != "" && by != ByLevel && !objectName.MatchString(name) {
		return ""
	}
	switch by {
	case ByQuota:
		return kubectl + " -n " + namespace + " describe resourcequota " + name +
			"    # raise it, or end what uses it up; one of limits also takes a LimitRange with defaults"
	case ByLimits:
		return kubectl + " -n " + namespace + " describe limitrange    # widen it, or ask for less"
	case ByWebhook:
		return kubectl + " get mutatingwebhookconfigurations,validatingwebhookconfigurations " +
			"-o 'custom-columns=IN:.metadata.name,NAME:.webhooks[*].name,SERVICE:.webhooks[*].clientConfig.service' | grep -F " +
			name +
			"    # whose is it? Have its Service answer, or exclude the namespace in its namespaceSelector"
	case ByPolicy:
		return kubectl + " get validatingadmissionpolicy " + name + " -o yaml    # is it meant for this namespace?"
	}
	return ""
}
