package stepstest

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carrick/cluster"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/steps"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// fakes are the fake servers and the host of a state. Several sessions can use them one after another.
type fakes struct {
	guide       *steps.Guide
	assets      fs.FS
	state       *state
	servers     map[steps.Side]*server
	web         *web
	root        string // root directory of the host; "" if no side is a host
	kubeconfigs map[steps.Side]string
	scrub       []string // pairs for a strings.Replacer that remove values that differ from run to run

	// around wraps the requests to a side's API server.
	around func(steps.Side) func(http.RoundTripper) http.RoundTripper
	// patient is the timeout of an API server if it is longer than the state's.
	patient time.Duration
}

// newFakes starts the servers of a state. They stop when the test ends.
func newFakes(t *testing.T, g *steps.Guide, assets fs.FS, dir, name string) *fakes {
	t.Helper()
	f := &fakes{guide: g, assets: assets, servers: map[steps.Side]*server{}, kubeconfigs: map[steps.Side]string{}}
	f.around = func(side steps.Side) func(http.RoundTripper) http.RoundTripper {
		return func(next http.RoundTripper) http.RoundTripper { return direct{f.servers[side], next} }
	}
	for _, side := range steps.Sides {
		if side != hostSide(g) {
			f.servers[side] = newServer(side)
		}
	}
	w, err := newWeb()
	if err != nil {
		t.Fatal(err)
	}
	f.web = w
	t.Cleanup(w.Close)
	t.Cleanup(w.tunnels.close)
	f.scrub = w.scrub()
	for side, s := range f.servers {
		f.scrub = append(
			f.scrub, fingerprint(s.signs.cert)[:16], "FINGERPRINT-"+string(side), s.URL, "https://"+string(side),
			strings.TrimPrefix(s.URL, "https://"), string(side)+":6443",
		)
	}
	if f.state, err = load(dir, name, t.TempDir(), f.servers, w); err != nil {
		t.Fatal(err)
	}
	f.scrub = append(f.scrub, w.tunnels.scrub()...)
	w.mu.Lock()
	w.answers = f.state.web
	w.mu.Unlock()
	t.Cleanup(func() { w.untouched(t) })
	for side, s := range f.servers {
		if err := s.set(f.state); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.stop)
		f.kubeconfigs[side] = config(t, s)
	}
	if hostSide(g) != "" {
		f.root = f.state.machine.write(t)
		f.scrub = append(f.scrub, f.root, "")
	}
	return f
}

// session opens a session on the fake servers. The caller must close the session.
func (f *fakes) session(t *testing.T) *engine.Session {
	t.Helper()
	st := f.state
	ends := map[steps.Side]engine.Endpoint{}
	for side := range f.servers {
		o := cluster.Options{Once: true, StaleAfter: st.timeout(side)}
		o.StaleAfter = max(o.StaleAfter, f.patient)
		o.Around = f.around(side)
		c, err := cluster.Open(
			kubeconfig.Access{Kubeconfig: f.kubeconfigs[side], Context: string(side), Timeout: o.StaleAfter}, o,
		)
		if err != nil {
			t.Fatal(err)
		}
		ends[side] = engine.Endpoint{Cluster: c, Name: string(side)}
	}
	if side := hostSide(f.guide); side != "" {
		ends[side] = engine.Endpoint{Host: st.machine.open(t, f.root), Name: f.guide.Sides[side].Name}
	}
	link, secrets := linkfile.New(f.guide.Name, "test"), map[string]masked.Value{}
	for key, v := range st.answers {
		q, _ := f.guide.Question(key)
		if q == nil {
			t.Fatalf("%s: answers: the guide has no question %q", st.path, key)
		}
		if q.Secret {
			secrets[key] = masked.New(fmt.Sprint(v))
			continue
		}
		var err error
		if link.Answers[key], err = q.Accept(v); err != nil {
			t.Fatalf("%s: answers: %s: %v", st.path, key, err)
		}
	}
	return engine.NewSession(
		engine.SessionOptions{Guide: f.guide, Link: link, Endpoints: ends, Assets: f.assets, Secrets: secrets},
	)
}

func config(t *testing.T, s *server) string {
	t.Helper()
	k := kubeconfig.Config{Name: string(s.side), Server: s.URL, CA: s.ca(), Token: masked.New(admin)}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(k.Bytes().Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
