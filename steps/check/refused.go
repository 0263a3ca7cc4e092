package check

import (
	"regexp"
	"strings"
)

// RefusedBy is the component that rejected an object.
type RefusedBy int

// The components that can reject an object. ByOther covers every message that names none of the others.
const (
	ByOther   RefusedBy = iota
	ByLevel             // the namespace's Pod Security level
	ByQuota             // a ResourceQuota
	ByLimits            // a LimitRange
	ByWebhook           // a webhook that denied the object or did not answer
	ByPolicy            // a ValidatingAdmissionPolicy
)

// Refuser returns the component that rejected an object, according to the rejection's message. It also returns the
// component's name if the message contains it (kubernetes/kubernetes: plugin/pkg/admission/resourcequota/controller.go,
// plugin/pkg/admission/limitranger/admission.go,
// staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go and
// staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go).
func Refuser(why string) (by RefusedBy, name string) {
	for _, r := range refusers {
		if m := r.says.FindStringSubmatch(why); m != nil {
			return r.by, m[1]
		}
	}
	// The messages are "maximum cpu usage per Container is 1, but limit is 2" and "cpu max limit to request ratio per Pod
	// is 2, but …".
	if strings.Contains(why, " usage per ") || strings.Contains(why, "limit to request ratio per ") {
		return ByLimits, ""
	}
	return ByOther, ""
}

// OverLimit reports whether a ResourceQuota or a LimitRange rejected an object. The cause is then the requested
// resources, not the object's kind or content.
func OverLimit(why string) bool {
	by, _ := Refuser(why)
	return by == ByQuota || by == ByLimits
}

// ExceededQuota extracts the name of the ResourceQuota and the exceeded limits from a rejection, such as
// "requests.storage=0,pods=4". If a ResourceQuota is not the cause, the bool is false.
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
	{ByWebhook, regexp.MustCompile(`failed calling webhook "([^"]*)"`)}, // first: others' messages are arbitrary
	{ByWebhook, regexp.MustCompile(`admission webhook "([^"]*)" denied`)},
	{ByPolicy, regexp.MustCompile(`ValidatingAdmissionPolicy '([^']*)'`)},
	{ByLevel, regexp.MustCompile(`violates PodSecurity "([^"]*)"`)},
	{ByQuota, regexp.MustCompile(`exceeded quota: ([^, ]+)`)},
	{ByQuota, regexp.MustCompile(`failed quota: ([^: ]+)`)},
}

// objectName matches valid object names. It is required because the message of a rejection is untrusted.
var objectName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

// RefusedFix returns a command that shows what rejected objects in a namespace. It returns "" if the cause is a Pod
// Security level or is not known from the message. kubectl is the command with its context.
func RefusedFix(kubectl, namespace, why string) string {
	by, name := Refuser(why)
	if name != "" && by != ByLevel && !objectName.MatchString(name) {
		return ""
	}
	switch by {
	case ByQuota:
		return kubectl + " -n " + namespace + " describe resourcequota " + name +
			"    # raise the quota, or delete objects that count against it; a quota of limits also requires a LimitRange " +
			"with defaults"
	case ByLimits:
		return kubectl + " -n " + namespace + " describe limitrange    # raise the limit, or request less"
	case ByWebhook:
		return kubectl + " get mutatingwebhookconfigurations,validatingwebhookconfigurations " +
			"-o 'custom-columns=IN:.metadata.name,NAME:.webhooks[*].name,SERVICE:.webhooks[*].clientConfig.service' | grep -F " +
			name +
			"    # restore its Service, or exclude the namespace in its namespaceSelector"
	case ByPolicy:
		return kubectl + " get validatingadmissionpolicy " + name +
			" -o yaml    # check whether the policy should apply to this namespace"
	}
	return ""
}
