package carricktest

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carrick/cluster/clustertest"
	"carrick/steps/linkfile"
)

// RenkuToken returns a token for an admin of the sandbox's Renku. The fake Renku issues it on request.
func RenkuToken(t testing.TB, box *clustertest.Sandbox) string {
	t.Helper()
	resp, err := standIn(t).Post(renkuAddress(t, box)+"/stand-in/token", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || got.Token == "" {
		t.Fatalf("no token: %s %v", resp.Status, err)
	}
	return got.Token
}

func standIn(t testing.TB) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func renkuAddress(t testing.TB, box *clustertest.Sandbox) string {
	t.Helper()
	cmd := Command(t, "check", "link.yaml", "--only", "api-answers", "-o", "json")
	cmd.Env = append(
		cmd.Env,
		"KUBECONFIG="+box.Kubeconfigs[clustertest.Local]+string(os.PathListSeparator)+box.Kubeconfigs[clustertest.Remote],
	)
	link := linkfile.New("renku", "site")
	link.Path = filepath.Join(cmd.Dir, "link.yaml")
	link.Local, link.Remote = linkfile.EndpointSpec{
		Context: box.Contexts[clustertest.Local],
	}, linkfile.EndpointSpec{Context: box.Contexts[clustertest.Remote]}
	if err := link.Save(); err != nil {
		t.Fatal(err)
	}
	out, said, _ := Finish(t, cmd)
	r, err := readReport("json", out)
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for _, c := range r.Checks {
		if address, _, ok := strings.Cut(c.Found, "/api/data"); ok {
			return address
		}
	}
	t.Fatalf("the sandbox does not report the address of Renku: %s", out)
	return ""
}
