package renku_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/cluster/probe"
	"carrick/steps/guides/renku"
	"carrick/steps/stepstest"
)

// site adds to answers what a link to the sandbox's Renku needs: a token of an
// admin, which its stand-in gives to who asks for one. All else is discovered.
func site(tb testing.TB, box *clustertest.Sandbox, answers map[string]any) map[string]any {
	tb.Helper()
	s := stepstest.Open(tb, box, renku.Guide(), assets, "site", nil)
	defer s.Close()
	url := ""
	for _, a := range s.Answers(tb.Context(), s.Guide().Step("register")) {
		if a.Question.Key == "renku.url" {
			url, _ = a.Value.(string)
		}
	}
	encoded := box.Run(
		tb, clustertest.Local, "", "-n", "renku", "get", "secret", "renku-ca", "-o", `jsonpath={.data.ca\.crt}`,
	)
	ca, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || url == "" {
		tb.Fatalf("the site tells neither where Renku is (%q) nor its CA (%v)", url, err)
	}
	out := map[string]any{"renku.token": tokenFrom(tb, url, ca)}
	maps.Copy(out, answers)
	return out
}

func tokenFrom(tb testing.TB, url string, ca []byte) string {
	tb.Helper()
	pool, err := probe.Pool(ca)
	if err != nil {
		tb.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	resp, err := client.Post(url+"/stand-in/token", "", nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	var got struct {
		Token string `json:"access_token"`
	}
	if err != nil || json.Unmarshal(body, &got) != nil || got.Token == "" {
		tb.Fatalf("no token: %s %v %.200s", resp.Status, err, body)
	}
	return got.Token
}
