package interlink

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"carrick/cluster"
	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/kubeconfig"
	"carrick/cluster/masked"
	"carrick/cluster/permission"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
	"carrick/steps/inventory"
)

// recordDoer is the common part of askDoer and watchDoer. Both send requests with a token and store the results in a
// ConfigMap, the record.
type recordDoer struct {
	action.Manifest
	file    string
	account func(steps.Env) string // returns the token's ServiceAccount
}

// plan adds the test requests to the plan, unless a valid record exists.
func (d recordDoer) plan(ctx context.Context, e steps.Env, what, note string) (steps.Change, error) {
	want, _, err := wantedSubject(e)
	if err != nil {
		return steps.Change{}, err
	}
	restarts, err := proxyRestarts(ctx, e)
	if err != nil {
		return steps.Change{}, err
	}
	if restarts {
		return steps.Change{}, steps.Absent("the proxy must start first")
	}
	c, err := d.Manifest.Plan(ctx, e)
	if err != nil {
		return c, err
	}
	text, err := validRecord(ctx, e, d.file)
	if err != nil || text != nil {
		return c, err
	}
	for i := range c.Items {
		if strings.HasPrefix(c.Items[i].What, "ConfigMap ") {
			c.Items[i].Diff, c.Items[i].Note = "", steps.JoinNotes(c.Items[i].Note, "the API's responses, without any secret")
		}
	}
	c.Items = append(
		[]steps.Item{
			{
				Verb: steps.Run, What: what + want.Endpoint, Note: note, Hash: steps.HashOf(want.Endpoint + want.CA + want.Account),
			},
		},
		c.Items...,
	)
	ns := workloadNamespace(e)
	c.Permissions = append(c.Permissions, check.Verbs("", "secrets", ns, "create", "patch", "delete", "get")...)
	c.Permissions = append(
		c.Permissions,
		permission.Rule{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: ns, Name: d.account(e)},
	)
	return c, nil
}

// keep writes the record. files maps the keys of the ConfigMap to their text.
func (d recordDoer) keep(ctx context.Context, e steps.Env, say steps.Progress, files map[string]string) error {
	m := action.Manifest{File: d.File, Values: action.Values{}}
	for name, text := range files {
		m.Values[name] = func(context.Context, steps.Env) (any, error) { return text, nil }
	}
	return m.Do(ctx, e, say)
}

// PlanUndo also lists the Secret that a killed run might have left.
func (d recordDoer) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := d.Manifest.PlanUndo(ctx, e)
	if err != nil {
		return c, err
	}
	live, err := leftSecret(ctx, e)
	if err != nil || live == nil {
		return c, err
	}
	c.Items = append(
		c.Items,
		steps.Item{
			Verb: steps.Delete, What: "Secret " + live.GetNamespace() + "/" + live.GetName(),
			Note: "left by an interrupted run", Hash: string(live.GetUID()),
		},
	)
	c.Permissions = append(
		c.Permissions,
		permission.Rule{Verb: "delete", Resource: "secrets", Namespace: live.GetNamespace(), Name: live.GetName()},
	)
	return c, nil
}

// Undo deletes the record, and the Secret that a killed run might have left.
func (d recordDoer) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	live, err := leftSecret(ctx, e)
	if err != nil {
		return err
	}
	if live != nil {
		if err := dropSecret(ctx, e, live); err != nil {
			return err
		}
		say.Did(steps.Delete, "Secret "+live.GetNamespace()+"/"+live.GetName(), "")
	}
	return d.Manifest.Undo(ctx, e, say)
}

// Export omits the record.
func (d recordDoer) Export(context.Context, steps.Env) ([]action.Exported, error) {
	return []action.Exported{
		{Hand: "# not part of the set-up: carrick sends requests and stores the responses, and undo deletes them"},
	}, nil
}

// boundSecret returns the empty Secret that a token is bound to. It is deleted as soon as the token has been used.
func boundSecret(e steps.Env) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("Secret")
	o.SetNamespace(workloadNamespace(e))
	o.SetName(recordName(e, e.Action+"-token"))
	return o
}

// leftSecret returns the existing Secret with the name of boundSecret, or nil if this link has not created one.
func leftSecret(ctx context.Context, e steps.Env) (*unstructured.Unstructured, error) {
	live, err := e.Cluster.Fetch(ctx, boundSecret(e))
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil || inventory.CreatedBy(live.GetAnnotations()) != e.Link {
		return nil, err
	}
	return live, nil
}

func dropSecret(ctx context.Context, e steps.Env, live *unstructured.Unstructured) error {
	return e.Cluster.Delete(
		ctx, check.ConfigMaps.GroupVersion().WithResource("secrets"), live.GetNamespace(), live.GetName(), live.GetUID(),
	)
}

// withToken requests a token that is bound to a Secret, and calls use with the token and its expiry. Afterwards it
// always deletes the Secret, which invalidates the token.
func withToken(
	ctx context.Context, e steps.Env, account string, lasts time.Duration, say steps.Progress,
	use func(masked.Value, time.Time) error,
) (err error) {
	o := boundSecret(e)
	key, value, _ := strings.Cut(e.OwnedBy(e.Action).Labels, "=")
	o.SetLabels(map[string]string{key: value})
	o.SetAnnotations(map[string]string{"carrick/created-by": e.Link})
	what := "Secret " + o.GetNamespace() + "/" + o.GetName()
	live, err := e.Cluster.Apply(ctx, o, cluster.ApplyOptions{Manager: e.Manager()})
	if err != nil {
		return err
	}
	say.Did(steps.Create, what, "")
	defer func() {
		over, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		gone := dropSecret(over, e, live)
		if gone == nil {
			say.Did(steps.Delete, what, "")
		}
		if err == nil {
			err = gone
		}
	}()
	token, ends, err := e.Cluster.RequestToken(ctx, live.GetNamespace(), account, cluster.TokenOptions{
		Expires: lasts,
		Bound: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Secret", Name: live.GetName(), UID: live.GetUID(),
		},
	})
	if err != nil {
		return err
	}
	return use(token, ends)
}

// askDoer sends the requests that a job would send.
type askDoer struct{ action.Manifest }

func (d askDoer) trial() recordDoer {
	return recordDoer{Manifest: d.Manifest, file: "asked.yaml", account: workloadAccount}
}

// Plan shows which requests carrick sends, and with which token.
func (d askDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	return d.trial().plan(
		ctx, e, "requests of "+workloadUser(e)+" through ",
		fmt.Sprintf(
			"with a token for %d h that is bound to a Secret; carrick deletes the Secret immediately afterwards, which "+
				"revokes the token",
			e.Answers.Int("vk.job-hours"),
		),
	)
}

// PlanUndo delegates to recordDoer.
func (d askDoer) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	return d.trial().PlanUndo(ctx, e)
}

// Undo delegates to recordDoer.
func (d askDoer) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	return d.trial().Undo(ctx, e, say)
}

// Export delegates to recordDoer.
func (d askDoer) Export(ctx context.Context, e steps.Env) ([]action.Exported, error) {
	return d.trial().Export(ctx, e)
}

// Do sends the requests through the endpoint and directly to the API server, and stores both responses.
func (d askDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	if text, err := validRecord(ctx, e, "asked.yaml"); err != nil || text != nil {
		return err
	}
	want, ca, err := wantedSubject(e)
	if err != nil {
		return err
	}
	out := apiReply{recordSubject: want, AskedSeconds: int64(jobHours(e).Seconds())}
	out.Time = time.Now().UTC().Truncate(time.Second)
	err = withToken(ctx, e, workloadAccount(e), jobHours(e), say, func(token masked.Value, ends time.Time) error {
		out.GrantedSeconds = int64(time.Until(ends).Round(time.Minute).Seconds())
		opens(ctx, want.Endpoint, say)
		say.Say("sending requests through %s, then directly", want.Endpoint)
		out.Through = askAt(ctx, e, "https://"+want.Endpoint, ca, token)
		out.Inside = askAt(ctx, e, e.Cluster.Server(), e.Cluster.CA(), token)
		return nil
	})
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(out)
	if err != nil {
		return err
	}
	lines := table(out.Through.Rules, out.Inside.Rules)
	_, argo := missingForArgo(out.Through.Rules)
	lines = append(append(lines, ""), argo...)
	return d.trial().keep(
		ctx, e, say, map[string]string{"asked.yaml": string(text), "rules.txt": strings.Join(lines, "\n") + "\n"},
	)
}

// opensWithin is how long carrick waits for a port to open. A cloud's load balancer takes a minute or more.
const opensWithin = 2 * time.Minute

// opens waits until the endpoint accepts connections, or until the timeout. After a timeout, the next request reports
// the error.
func opens(ctx context.Context, where string, say steps.Progress) {
	ctx, cancel := context.WithTimeout(ctx, opensWithin)
	defer cancel()
	for first := true; ; first = false {
		if _, err := probe.TCP(ctx, where); err == nil {
			return
		}
		if first {
			say.Say("waiting until %s accepts connections", where)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second / 2):
		}
	}
}

// askAt sends all requests to one server and returns the responses.
func askAt(ctx context.Context, e steps.Env, server string, ca []byte, token masked.Value) apiAnswer {
	var out apiAnswer
	fail := func(doing string, err error) apiAnswer {
		out.Error = doing + ": " + clean.Text(failure.Explain(err))
		return out
	}
	got, err := probe.HTTP(
		ctx, http.MethodGet, server+"/api",
		probe.HTTPOptions{Roots: ca, Header: http.Header{"Authorization": {"Bearer " + token.Reveal()}}, NoRedirects: true},
	)
	if err != nil {
		return fail("GET /api", err)
	}
	if out.API = got.Status; got.Status != http.StatusOK {
		return fail("GET /api", fmt.Errorf("the status is %d %s", got.Status, http.StatusText(got.Status)))
	}
	k := kubeconfig.Config{Name: e.Link, Server: server, CA: ca, Namespace: workloadNamespace(e), Token: token}
	as, err := e.Cluster.As([]byte(k.Bytes().Reveal()))
	if err != nil {
		return fail("using the token", err)
	}
	defer as.Close()
	if v, err := as.Version(ctx); err == nil { // optional: the published Ingress does not forward /version
		out.Version = v.Git
	}
	who, err := as.WhoAmI(ctx)
	if err != nil {
		return fail("requesting the identity", err)
	}
	out.WhoAmI = who.Name
	rules, paths, partial, err := as.Rules(ctx, workloadNamespace(e))
	if err != nil {
		return fail("requesting the permissions", err)
	}
	out.Rules, out.Partial = rulesOf(rules, paths), partial
	return out
}
