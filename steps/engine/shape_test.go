package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"carrick/cluster"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/cluster/probe"
	"carrick/cluster/tracked"
	"carrick/cluster/web"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/engine"
	"carrick/steps/linkfile"
)

// shapes has the most demanding fact, action and check of each of five guides, to show that the types can express them.
// They are never run, only validated.
func shapes() []*steps.Guide {
	return []*steps.Guide{
		restartBetweenCalls(), certificateAcrossSides(), filesOnAHost(), endpointFromElsewhere(), optionalSide(),
	}
}

func TestTheTypesHoldTheHardestOfEachGuide(t *testing.T) {
	guides := shapes()
	if len(guides) != 5 {
		t.Fatalf("%d guides, want all five", len(guides))
	}
	assets := fstest.MapFS{}
	add := func(path, text string) { assets[path] = &fstest.MapFile{Data: []byte(text)} }
	add("certificate/keys.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: '${link.name}', namespace: n}\n")
	add(
		"certificate/csr.yaml",
		"apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {name: '${link.name}'}\nspec: "+
			"{request: '${peer.csr}'}\n",
	)
	add(
		"certificate/controlplane.yaml",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: c, namespace: n}\nstringData: {kubeconfig: '${values.kubeconfig}', "+
			"ca: '${peer.certificate}'}\n",
	)
	add(
		"certificate/server.yaml",
		"apiVersion: networking.liqo.io/v1beta1\nkind: GatewayServer\nmetadata: {name: g, namespace: n}\nspec: {endpoint: "+
			"{nodePort: '${answers.network.port}'}}\n",
	)
	add(
		"optional/binding.yaml",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: '${each.name}', namespace: "+
			"'${each.namespace}'}\n",
	)
	if err := engine.Validate(guides, assets); err != nil {
		t.Fatal(err)
	}
}

func guide(name string, local, remote steps.Role, step steps.Step) *steps.Guide {
	step.Name, step.Title, step.Why = "one", "One", "because"
	return &steps.Guide{
		Name: name, Title: name, About: "a shape", Page: "https://example.org",
		Sides: map[steps.Side]steps.Role{steps.Local: local, steps.Remote: remote}, Steps: []steps.Step{step},
	}
}

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// Renku: register a cluster, restart four Deployments because of that, and only then create a pool. The restart is a
// hash of its cause in the pod template.
func restartBetweenCalls() *steps.Guide {
	type registered struct{ ID, Name string }
	cause := func(e steps.Env) (string, error) {
		id, err := e.Own.Text("cluster-id")
		return masked.New(id).Hash(), err
	}
	g := guide(
		"restart", steps.Role{Name: "local", Kind: steps.Cluster}, steps.Role{Name: "remote", Kind: steps.Cluster},
		steps.Step{
			Ask: []steps.Question{{Key: "renku.token", Title: "Token", Help: "of an admin", Kind: steps.Text, Secret: true}},
			Facts: []steps.Fact{{
				Name: "cluster-id", On: steps.Local,
				Learn: func(ctx context.Context, e steps.Env) (any, error) {
					var all []registered
					api, err := e.API()
					if err != nil {
						return nil, err
					}
					if _, err := api.JSON(ctx, "GET", "/clusters", nil, &all); err != nil {
						return nil, err
					}
					for _, c := range all {
						if c.Name == e.Link {
							return c.ID, nil
						}
					}
					return nil, steps.Absent("no cluster is registered as %s", e.Link)
				},
			}},
			Actions: []steps.Action{
				{Name: "register", Title: "Register", On: steps.Local, Doer: action.Call{
					Preview: func(context.Context, steps.Env) (steps.Change, error) {
						return steps.Change{Items: []steps.Item{{Verb: steps.Create, What: "POST /clusters"}}}, nil
					},
					Make: func(ctx context.Context, e steps.Env, _ steps.Progress) error {
						api, err := e.API()
						if err == nil {
							_, err = api.JSON(ctx, "POST", "/clusters", registered{Name: e.Link}, nil)
						}
						return err
					},
					Left: func(context.Context, steps.Env) (steps.Change, error) { return steps.Change{}, nil },
					Revert: func(ctx context.Context, e steps.Env, _ steps.Progress) error {
						api, err := e.API()
						if err == nil {
							_, err = api.JSON(ctx, "DELETE", "/clusters/x", nil, nil)
						}
						return err
					},
				}},
				{Name: "restart", Title: "Restart", On: steps.Local, Needs: []string{"registered"}, Doer: action.Call{
					Preview: func(_ context.Context, e steps.Env) (steps.Change, error) {
						hash, err := cause(e)
						return steps.Change{
							Items: []steps.Item{{Verb: steps.Update, What: "Deployment renku/data-service", Hash: hash}},
						}, err
					},
					Make: func(ctx context.Context, e steps.Env, _ steps.Progress) error {
						hash, err := cause(e)
						if err != nil {
							return err
						}
						patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"carrick/restarted-for":%q}}}}}`, hash)
						_, err = e.Cluster.Patch(
							ctx, deployments, "renku", "data-service", []byte(patch),
							cluster.PatchOptions{Manager: "carrick." + e.Link + "." + e.Action},
						)
						return err
					},
					Keeps: "a restart can't be taken back",
				}},
			},
			Checks: []steps.Check{
				{
					Name: "registered", Title: "the cluster is registered", Why: "w", On: steps.Local, From: "Renku API",
					FixedBy: "register", Run: func(_ context.Context, e steps.Env) steps.Result {
						id, err := e.Own.Text("cluster-id")
						if err != nil {
							return steps.Errored(err)
						}
						return steps.Passed("as %s", id)
					},
				},
			},
		},
	)
	g.API = func(_ context.Context, e steps.Env) (web.Address, error) {
		return web.Address{Base: "https://example.org/api/data", Token: e.Answers.Masked("renku.token")}, nil
	}
	return g
}

// Liqo: a key that never leaves its side, a request that is sent to the other side, and a certificate that is returned.
// An answer decides which side has the gateway.
func certificateAcrossSides() *steps.Guide {
	serves := func(s steps.Side) func(steps.Env) bool {
		return func(e steps.Env) bool { return e.Answers.Text("network.server") == string(s) }
	}
	return guide(
		"certificate", steps.Role{Name: "consumer", Kind: steps.Cluster}, steps.Role{Name: "provider", Kind: steps.Cluster},
		steps.Step{
			Ask: []steps.Question{
				{
					Key: "network.server", Title: "Which side listens", Help: "h", Kind: steps.Pick,
					Of:      []steps.Choice{{Value: "local", Title: "consumer"}, {Value: "remote", Title: "provider"}},
					Default: steps.Fixed("remote", "usual"),
				},
				{
					Key: "network.port", Title: "Port", Help: "h", Kind: steps.Port, On: steps.Remote,
					Default: steps.FromFact("free-port", "a dry run"),
				},
			},
			Facts: []steps.Fact{
				{Name: "free-port", On: steps.Remote, Learn: func(context.Context, steps.Env) (any, error) { return 30742, nil }},
				{Name: "csr", On: steps.Local, Shared: true, Learn: func(ctx context.Context, e steps.Env) (any, error) {
					s, err := e.Cluster.Secret(ctx, "n", e.Link, "csr")
					if apierrors.IsNotFound(err) {
						return nil, steps.Absent("the key is not made yet")
					}
					if err != nil {
						return nil, err
					}
					return s.Data["csr"].Reveal(), nil
				}},
				{Name: "certificate", On: steps.Remote, Shared: true, Learn: func(ctx context.Context, e steps.Env) (any, error) {
					csr, err := e.Cluster.Get(
						ctx,
						schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"},
						"", e.Link,
					)
					if err != nil {
						return nil, err
					}
					cert, ok, _ := unstructured.NestedString(csr.Object, "status", "certificate")
					if !ok {
						return nil, steps.Absent("the request is not signed yet")
					}
					return cert, nil
				}},
			},
			Actions: []steps.Action{
				{Name: "key", Title: "Make the key", On: steps.Local, Doer: action.Mint{
					File: "keys.yaml", Keys: []string{"key", "csr"},
					Make: func(context.Context, steps.Env) (map[string]masked.Value, error) {
						return map[string]masked.Value{"key": masked.New("k"), "csr": masked.New("c")}, nil
					},
				}},
				{Name: "request", Title: "Ask for a certificate", On: steps.Remote, Doer: action.Manifest{File: "csr.yaml"}},
				{
					Name: "controlplane", Title: "Store the kubeconfig", On: steps.Local,
					Doer: action.Manifest{File: "controlplane.yaml", Values: action.Values{
						"kubeconfig": func(ctx context.Context, e steps.Env) (any, error) {
							key, err := e.Cluster.Secret(ctx, "n", e.Link, "key")
							if err != nil {
								return nil, err
							}
							cert, err := e.Peer.Text("certificate")
							return kubeconfig.Config{ClientCert: []byte(cert), ClientKey: key.Data["key"]}.Bytes(), err
						},
					}},
				},
				{
					Name: "server-here", Title: "Listen", On: steps.Local, When: serves(steps.Local),
					Doer: action.Manifest{File: "server.yaml"},
				},
				{
					Name: "server-there", Title: "Listen", On: steps.Remote, When: serves(steps.Remote),
					Doer: action.Manifest{File: "server.yaml"},
				},
			},
			Checks: []steps.Check{{
				Name: "gateway-up", Title: "the gateway runs", Why: "w", On: steps.Both, Timeout: 2 * time.Minute,
				When: func(e steps.Env) bool { return e.Answers.Text("network.server") == string(e.Side) },
				Run:  func(context.Context, steps.Env) steps.Result { return steps.Waits(time.Now(), "starts") },
			}},
		},
	)
}

// Open OnDemand: a file on a machine, with a token from a cluster.
func filesOnAHost() *steps.Guide {
	return guide(
		"files", steps.Role{Name: "web node", Kind: steps.Host}, steps.Role{Name: "cluster", Kind: steps.Cluster},
		steps.Step{
			Facts: []steps.Fact{
				{
					Name: "token", On: steps.Remote, Secret: true, Shared: true,
					Learn: func(ctx context.Context, e steps.Env) (any, error) {
						s, err := e.Cluster.Secret(ctx, "ondemand", "token", "token")
						if err != nil {
							return nil, err
						}
						return s.Data["token"], nil
					},
				},
			},
			Actions: []steps.Action{{Name: "root-kubeconfig", Title: "Root's kubeconfig", On: steps.Local, Doer: action.File{
				Path: "/root/.kube/config", Mode: 0o600, Secret: true,
				Content: func(_ context.Context, e steps.Env) (masked.Value, error) {
					token, err := e.Peer.Masked("token")
					return kubeconfig.Config{Token: token}.Bytes(), err
				},
			}}},
			Checks: []steps.Check{{
				Name: "kubectl-runs", Title: "kubectl runs there", Why: "w", On: steps.Local, FixedBy: "root-kubeconfig",
				Run: func(ctx context.Context, e steps.Env) steps.Result {
					if _, _, err := e.Host.Run(ctx, "kubectl", "version", "--client"); err != nil {
						return steps.Errored(err)
					}
					return steps.Passed("it does")
				},
			}},
		},
	)
}

// InterLink: one endpoint, checked from a machine that is not a cluster.
func endpointFromElsewhere() *steps.Guide {
	return guide(
		"endpoint", steps.Role{Name: "cluster", Kind: steps.Cluster},
		steps.Role{Name: "edge", Kind: steps.Host, Optional: true}, steps.Step{
			Facts: []steps.Fact{
				{
					Name: "endpoint", On: steps.Local, Shared: true,
					Learn: func(context.Context, steps.Env) (any, error) { return "10.0.0.1:60443", nil },
				},
			},
			Checks: []steps.Check{
				{
					Name: "here", Title: "the endpoint answers here", Why: "w", On: steps.Local, From: "this machine",
					Run: endpoint(steps.Facts.Text, func(e steps.Env) steps.Facts { return e.Own }),
				},
				{
					Name: "there", Title: "the endpoint answers there", Why: "w", On: steps.Remote, Needs: []string{"peer/here"},
					Run: endpoint(steps.Facts.Text, func(e steps.Env) steps.Facts { return e.Peer }),
				},
			},
		},
	)
}

func endpoint(
	text func(steps.Facts, string) (string, error), of func(steps.Env) steps.Facts,
) func(context.Context, steps.Env) steps.Result {
	return func(ctx context.Context, e steps.Env) steps.Result {
		addr, err := text(of(e), "endpoint")
		if err != nil {
			return steps.Errored(err)
		}
		report, err := tracked.Look(
			ctx, "tls/"+addr, time.Minute,
			func(ctx context.Context) (probe.TLSReport, error) { return probe.TLS(ctx, addr, "", nil) },
		)
		if err != nil {
			return steps.Errored(err)
		}
		r := steps.Passed("%s", report.Version)
		r.Again = report.NotAfter
		return r
	}
}

// vSphere: the second side is optional, and one manifest is rendered for each discovered namespace.
func optionalSide() *steps.Guide {
	return guide(
		"optional", steps.Role{Name: "guest", Kind: steps.Cluster},
		steps.Role{Name: "supervisor", Kind: steps.Cluster, Optional: true}, steps.Step{
			Facts: []steps.Fact{
				{
					Name: "default-class", On: steps.Remote,
					Learn: func(context.Context, steps.Env) (any, error) { return "gold", nil },
				},
			},
			Actions: []steps.Action{{
				Name: "bindings", Title: "Bind", On: steps.Local,
				When: func(e steps.Env) bool { _, err := e.Peer.Text("default-class"); return err == nil },
				Doer: action.Manifest{File: "binding.yaml", Each: func(context.Context, steps.Env) ([]any, error) {
					return []any{map[string]any{"name": "a", "namespace": "b"}}, nil
				}},
			}},
			Checks: []steps.Check{
				{
					Name: "class", Title: "the class is declared", Why: "w", On: steps.Remote,
					Run: func(context.Context, steps.Env) steps.Result { return steps.Passed("") },
				},
				{Name: "kyverno", Title: "a policy engine runs", Why: "w", On: steps.Local, NotChecked: "a cluster with Kyverno"},
			},
		},
	)
}

// Run is never called for a side that does not exist.
func TestAnAbsentSideIsASkipThatSaysSo(t *testing.T) {
	g := optionalSide()
	g.Steps[0].Checks[0].Run = func(context.Context, steps.Env) steps.Result { panic("must not run") }
	s := engine.NewSession(
		engine.SessionOptions{Guide: g, Link: linkfile.New(g.Name, "x"), Endpoints: map[steps.Side]engine.Endpoint{}},
	)
	r, _ := s.Probe(t.Context(), steps.Cell{Step: "one", Check: "class", Side: steps.Remote})
	if r.Status != steps.Skip || r.Found == "" {
		t.Fatalf("got %v %q, want a skip with a reason", r.Status, r.Found)
	}
}
