package renku_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

func proof() stepstest.Proof {
	return stepstest.Proof{
		Bench: bench(), More: inRenku, Random: `"carrick/note\.pool":"\d+"`,
		Blind: map[steps.Side][]string{
			steps.Local: {"pool-rules", "pool-sizes"}, // of the answers alone
			steps.Remote: { // of the answers, of names and of servers as this machine finds them
				"session-host-name", "session-host-resolves", "session-tls", "session-path", "session-protocol", "session-port",
				"issuer",
			},
		},
	}
}

func TestVerifyCrashes(t *testing.T) { proof().Crashes(t) }
func TestVerifyTrust(t *testing.T)   { proof().Trust(t) }
func TestVerifyFaults(t *testing.T)  { proof().Faults(t) }

// inRenku is what Renku has of clusters and pools, without the ids that it gives.
func inRenku(tb testing.TB, box *clustertest.Sandbox, answers map[string]any) map[string]string {
	tb.Helper()
	url, ca := "", box.Run(
		tb, clustertest.Local, "", "-n", "renku", "get", "secret", "renku-ca", "-o", `jsonpath={.data.ca\.crt}`,
	)
	s := stepstest.Open(tb, box, renku.Guide(), assets, "site", nil)
	defer s.Close()
	for _, a := range s.Answers(context.Background(), s.Guide().Step("register")) {
		if a.Question.Key == "renku.url" {
			url, _ = a.Value.(string)
		}
	}
	raw, err := base64.StdEncoding.DecodeString(ca)
	if err != nil {
		tb.Fatal(err)
	}
	pool, err := probe.Pool(raw)
	if err != nil {
		tb.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	out := map[string]string{}
	for _, kind := range []string{"clusters", "resource_pools"} {
		req, err := http.NewRequest(http.MethodGet, url+"/api/data/"+kind, nil)
		if err != nil {
			tb.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+answers["renku.token"].(string))
		resp, err := client.Do(req)
		if err != nil {
			tb.Fatal(err)
		}
		var rows []map[string]any
		err = json.NewDecoder(resp.Body).Decode(&rows)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			tb.Fatalf("list Renku's %s: %s %v", kind, resp.Status, err)
		}
		for i, row := range rows {
			b, err := json.Marshal(withoutIDs(row))
			if err != nil {
				tb.Fatal(err)
			}
			out[fmt.Sprintf("%s %d", kind, i)] = string(b)
		}
	}
	return out
}

func withoutIDs(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			if v[key] = withoutIDs(v[key]); key == "id" {
				delete(v, key)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutIDs(v[i])
		}
	}
	return v
}
