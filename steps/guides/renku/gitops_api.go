package renku

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"carrick/steps"
	"carrick/steps/action"
)

// header and exportedCA are parts of the exported curl commands. The Authorization header is in a
// file outside the export, so that no command line contains the token.
const (
	header     = `-H @"$private/header" -H 'Content-Type: application/json'`
	exportedCA = "renku-ca.crt"
)

func curl(e steps.Env) (string, error) {
	ca, err := renkuTrust(e)
	if err != nil {
		return "", err
	}
	if ca == "" {
		return "curl -sS", nil
	}
	return "curl -sS --cacert files/" + string(steps.Local) + "/" + exportedCA, nil
}

func request(e steps.Env, method, path, file string) (string, error) {
	c, err := curl(e)
	if err != nil {
		return "", err
	}
	if renkuURL(e) == "" {
		return "", steps.Absent("Renku's address is unknown: set renku.url")
	}
	if method != "POST" {
		c += " -X " + method
	}
	return fmt.Sprintf("%s %s \\\n  -d @%s %s/api/data%s", c, header, file, shellURL(renkuURL(e)), path), nil
}

func shellURL(v string) string {
	if strings.ContainsAny(v, " '\"$`\\&;|<>()*?#!~{}[]") {
		return singleQuoted(v)
	}
	return v
}

func localFile(name string) string { return "files/" + string(steps.Local) + "/" + name }

func asJSON(name string, v any) (action.Exported, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	return action.Exported{Path: name, Content: append(b, '\n')}, err
}

func exportSignIn(_ context.Context, e steps.Env) ([]action.Exported, error) {
	c, err := curl(e)
	if err != nil {
		return nil, err
	}
	at, err := realmAddress(e)
	if err != nil {
		return nil, err
	}
	var out []action.Exported
	if at.CA != "" {
		out = append(out,
			action.Exported{Path: exportedCA, Content: []byte(at.CA)},
			action.Exported{
				Note: "the commands trust only " + exportedCA +
					". If the portal's certificate is publicly trusted, omit --cacert",
			})
	}
	oidc := shellURL(at.Base) + "/protocol/openid-connect"
	asked := "client_id=" + loginClient + "&grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code="
	return append(out, action.Exported{Hand: strings.Join([]string{
		"private=$(mktemp -d)    # outside this directory, because it contains the token. At the end: rm -r \"$private\"",
		c + " -d client_id=" + loginClient + " " + oidc + "/auth/device > \"$private/device\"",
		"jq -r .verification_uri_complete \"$private/device\"    # open it in a browser and sign in as a Renku admin",
		"until jq -r '\"" + asked + "\" + (.device_code|@uri)' \"$private/device\" |",
		"  " + c + " -d @- " + oidc + "/token |",
		"  jq -er '.access_token // empty' > \"$private/token\"; do sleep 5; done",
		"printf 'Authorization: Bearer %s\\n' \"$(cat \"$private/token\")\" > \"$private/header\"",
	}, "\n")}), nil
}

func exportCluster(_ context.Context, e steps.Env) ([]action.Exported, error) {
	payload, err := clusterPayload(e)
	if err != nil {
		return nil, err
	}
	if bad := payloadProblems(e, payload); len(bad) > 0 {
		return nil, steps.Absent("Renku or Kubernetes would reject the cluster: %s", strings.Join(bad, "; "))
	}
	body, err := asJSON("register.json", payload)
	if err != nil {
		return nil, err
	}
	post, err := request(e, "POST", "/clusters", localFile(body.Path))
	if err != nil {
		return nil, err
	}
	out := []action.Exported{body}
	lines := []string{post + ` | tee "$private/cluster"`, `cluster=$(jq -er .id "$private/cluster")`}
	if payload[fieldDefault] == true {
		mend, err := asJSON("register.patch.json", map[string]any{fieldDefault: true, fieldTLS: ""})
		if err != nil {
			return nil, err
		}
		patch, err := request(e, "PATCH", `/clusters/"$cluster"`, localFile(mend.Path))
		if err != nil {
			return nil, err
		}
		out = append(out, mend)
		lines = append(
			lines, "# Renku drops "+fieldDefault+" when it creates a cluster. Without this request, sessions have no TLS", patch,
		)
	}
	return append(out, action.Exported{Hand: strings.Join(lines, "\n")}), nil
}

func exportPool(_ context.Context, e steps.Env) ([]action.Exported, error) {
	d, err := thePool(e)
	if err != nil {
		return nil, err
	}
	if bad := append(poolProblems(e, d), d.tooTight()...); len(bad) > 0 {
		return nil, steps.Absent("Renku or Kubernetes would reject the pool: %s", strings.Join(bad, "; "))
	}
	body, err := asJSON("pool.json", d.payload)
	if err != nil {
		return nil, err
	}
	post, err := request(e, "POST", "/resource_pools", "-")
	if err != nil {
		return nil, err
	}
	out := []action.Exported{body}
	lines := []string{
		"# run this after the restart. Otherwise Renku reports that the cluster does not exist",
		fmt.Sprintf(
			"jq --arg id \"$cluster\" '.cluster_id = $id' %s |\n  %s | tee \"$private/pool\"", localFile(body.Path), post,
		),
		`pool=$(jq -er .id "$private/pool")`,
	}
	if d.Factor != 0 {
		mend, err := asJSON("pool.patch.json", map[string]any{"cpu_limit_factor": d.Factor})
		if err != nil {
			return nil, err
		}
		patch, err := request(e, "PATCH", `/resource_pools/"$pool"`, localFile(mend.Path))
		if err != nil {
			return nil, err
		}
		out, lines = append(out, mend), append(lines, "# Renku drops cpu_limit_factor when it creates a pool", patch)
	}
	return append(out, action.Exported{Hand: strings.Join(lines, "\n")}), nil
}

func exportMembers(_ context.Context, e steps.Env) ([]action.Exported, error) {
	var all []member
	for _, typed := range e.Answers.List("pool.members") {
		m, err := parseMember(typed)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		return nil, nil
	}
	body, err := asJSON("members.json", all)
	if err != nil {
		return nil, err
	}
	post, err := request(e, "POST", `/resource_pools/"$pool"/members`, localFile(body.Path))
	if err != nil {
		return nil, err
	}
	return []action.Exported{body, {Hand: post}}, nil
}
