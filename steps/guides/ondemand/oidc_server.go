package ondemand

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"carrick/cluster"
	"carrick/steps"
	"carrick/steps/check"
)

// oidcServer contains the OIDC flags of kube-apiserver.
type oidcServer struct{ issuer, clientID, claim, prefix, config string }

// flags maps flag names to fields. The fact server-oidc uses the flag names as keys.
func (s *oidcServer) flags() map[string]*string {
	return map[string]*string{
		"oidc-issuer-url": &s.issuer, "oidc-client-id": &s.clientID, "oidc-username-claim": &s.claim,
		"oidc-username-prefix": &s.prefix, "authentication-config": &s.config,
	}
}

// learnServerOIDC reads the flags from kube-apiserver's pods. Only some clusters, such as those created by kubeadm, run
// kube-apiserver in pods.
func learnServerOIDC(ctx context.Context, e steps.Env) (any, error) {
	pods, err := check.List[corev1.Pod](
		ctx, e.Cluster, check.Pods, "kube-system", cluster.Selector{Labels: "component=kube-apiserver"},
	)
	if err != nil {
		return nil, err
	}
	if len(pods) == 0 {
		return nil, steps.Absent("the API server's pods are not visible (managed control plane): ask its operator for the " +
			"OIDC issuer, client id, username claim and username prefix")
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	out := map[string]any{}
	for i, p := range pods {
		found := map[string]any{}
		for _, c := range p.Spec.Containers {
			for name, value := range argumentsOf(slices.Concat(c.Command, c.Args)) {
				if _, known := new(oidcServer).flags()[name]; known {
					found[name] = value
				}
			}
		}
		if i > 0 && fmt.Sprint(out) != fmt.Sprint(found) {
			return nil, fmt.Errorf("pods %s and %s have different OIDC settings", pods[0].Name, p.Name)
		}
		out = found
	}
	return out, nil
}

// argumentsOf parses words, a command line, into flags and their values.
func argumentsOf(words []string) map[string]string {
	out := map[string]string{}
	for i, w := range words {
		name, ok := strings.CutPrefix(w, "--")
		if !ok {
			continue
		}
		name, value, has := strings.Cut(name, "=")
		if !has && i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
			value = words[i+1]
		}
		out[name] = value
	}
	return out
}

func serverOIDC(of steps.Facts) (oidcServer, error) {
	var s oidcServer
	v, err := of.Value("server-oidc")
	if err != nil {
		return s, err
	}
	m, _ := v.(map[string]any)
	for name, into := range s.flags() {
		*into, _ = m[name].(string)
	}
	return s, nil
}

// configured reports whether the flags configure OIDC. If not, the check must return the result why.
func (s oidcServer) configured() (why steps.Result, ok bool) {
	switch {
	case s.config != "":
		return steps.Skipped(
			"the API server reads %s from the control-plane node's disk, which carrick cannot read. Check jwt[].issuer.url, "+
				"audiences and claimMappings.username in that file",
			s.config,
		), false
	case s.issuer == "":
		return steps.Failed("kube-apiserver has no --oidc-issuer-url, so it accepts no user's token", apiServerFlags), false
	}
	return steps.Result{}, true
}

const apiServerFlags = `# on each node of the control plane, in /etc/kubernetes/manifests/kube-apiserver.yaml, under command:
- --oidc-issuer-url=ISSUER
- --oidc-client-id=CLIENT
- --oidc-username-claim=preferred_username
- --oidc-username-prefix=-`

// apiFlags returns apiServerFlags with the issuer and the client id from the answers.
func apiFlags(e steps.Env) string { return apiFlagsFor(e, e.Answers.Text("oidc.issuer")) }

// apiFlagsFor is like apiFlags, but with the given issuer.
func apiFlagsFor(e steps.Env, issuer string) string {
	client := cmp.Or(e.Answers.Text("oidc.audience"), "CLIENT")
	return strings.NewReplacer("ISSUER", issuer, "=CLIENT", "="+client).Replace(apiServerFlags)
}

func serverIssuer(_ context.Context, e steps.Env) steps.Result {
	s, err := serverOIDC(e.Own)
	if err != nil {
		return steps.Errored(err)
	}
	if why, ok := s.configured(); !ok {
		if why.Fix != "" {
			why.Fix = apiFlags(e)
		}
		return why
	}
	issuer, audience := e.Answers.Text("oidc.issuer"), e.Answers.Text("oidc.audience")
	var off []string
	if s.issuer != issuer {
		off = append(
			off, fmt.Sprintf("--oidc-issuer-url is %s, but oidc.issuer is %s", shownWord(s.issuer), issuer),
		)
	}
	if s.clientID != audience {
		off = append(
			off, fmt.Sprintf("--oidc-client-id is %s, but oidc.audience is %s", shownWord(s.clientID), audience),
		)
	}
	if len(off) > 0 {
		return steps.Failed(strings.Join(off, "; "), apiFlags(e))
	}
	return steps.Passed("issuer %s, client %s", s.issuer, s.clientID)
}

func serverUsername(_ context.Context, e steps.Env) steps.Result {
	s, err := serverOIDC(e.Own)
	if err != nil {
		return steps.Errored(err)
	}
	if why, ok := s.configured(); !ok {
		if why.Status == steps.Fail {
			return steps.Skipped("%s", why.Found)
		}
		return why
	}
	claim := cmp.Or(s.claim, "sub")
	switch {
	case claim == "sub":
		return steps.Failed(
			"--oidc-username-claim is sub, which is usually a number or a UUID, but the RoleBindings use the login name",
			apiFlags(e),
		)
	case s.prefix == "" && claim != "email":
		return steps.Failed(
			"--oidc-username-prefix is not set, so the username is "+shownWord(s.issuer+"#NAME")+
				", but the RoleBindings use NAME without a prefix",
			apiFlags(e),
		)
	case s.prefix != "-" && s.prefix != "":
		return steps.Failed(
			"--oidc-username-prefix is "+shownWord(s.prefix)+", so the username is "+shownWord(s.prefix+"NAME")+
				", but the RoleBindings use NAME without a prefix",
			apiFlags(e),
		)
	case claim == "email":
		return steps.Warned(
			"--oidc-username-claim is email, but the RoleBindings use the login name, which is rarely an email address",
			apiFlags(e),
		)
	}
	return steps.Passed("username claim %s, no prefix", claim)
}
