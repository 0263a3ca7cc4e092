package interlink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"sigs.k8s.io/yaml"

	"carrick/cluster/clean"
	"carrick/cluster/failure"
	"carrick/cluster/masked"
	"carrick/cluster/probe"
	"carrick/steps"
	"carrick/steps/action"
	"carrick/steps/check"
)

// watchDoer keeps a watch open through the endpoint. The watched ConfigMap does not change, so the outcome shows
// whether a proxy closes idle connections.
type watchDoer struct{ action.Manifest }

func watchAccount(e steps.Env) string { return recordName(e, "watch") }
func watchUser(e steps.Env) string {
	return check.Account{Namespace: workloadNamespace(e), Name: watchAccount(e)}.Username()
}

func (d watchDoer) trial() recordDoer {
	return recordDoer{Manifest: d.Manifest, file: "watched.yaml", account: watchAccount}
}

// Plan shows how long carrick keeps a watch open, and with which account.
func (d watchDoer) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	return d.trial().plan(
		ctx, e, "a watch through ",
		fmt.Sprintf(
			"open for %d s, as an account that can only watch one ConfigMap, with a token that is bound to a Secret; carrick "+
				"deletes the Secret immediately afterwards",
			e.Answers.Int("test.watch"),
		),
	)
}

// PlanUndo delegates to recordDoer.
func (d watchDoer) PlanUndo(ctx context.Context, e steps.Env) (steps.Change, error) {
	return d.trial().PlanUndo(ctx, e)
}

// Undo delegates to recordDoer.
func (d watchDoer) Undo(ctx context.Context, e steps.Env, say steps.Progress) error {
	return d.trial().Undo(ctx, e, say)
}

// Export delegates to recordDoer.
func (d watchDoer) Export(ctx context.Context, e steps.Env) ([]action.Exported, error) {
	return d.trial().Export(ctx, e)
}

// Do keeps the watch open for test.watch seconds and stores the outcome.
func (d watchDoer) Do(ctx context.Context, e steps.Env, say steps.Progress) error {
	if text, err := validRecord(ctx, e, "watched.yaml"); err != nil || text != nil {
		return err
	}
	want, ca, err := wantedSubject(e)
	if err != nil {
		return err
	}
	out := watched{recordSubject: want, Wanted: e.Answers.Int("test.watch")}
	out.Account, out.Time = watchUser(e), time.Now().UTC().Truncate(time.Second)
	begun := out
	begun.Holding = true
	if err := d.keep(ctx, e, say, begun); err != nil { // also creates the account and the watched ConfigMap
		return err
	}
	long := time.Duration(out.Wanted) * time.Second
	err = withToken(
		ctx, e, watchAccount(e), max(long+5*time.Minute, 10*time.Minute), say, func(token masked.Value, _ time.Time) error {
			say.Say("keeping a watch open through %s for %s", want.Endpoint, long)
			got, err := held(ctx, e, want.Endpoint, ca, token, long)
			if err != nil {
				out.Error = clean.Text(failure.Explain(err))
				return ctx.Err()
			}
			out.Status, out.Seconds, out.Ended, out.Why = got.Status, got.Held.Round(100*time.Millisecond).Seconds(), got.Ended, clean.Text(got.Why)
			out.Events = bytes.Contains(got.Body, []byte(`"ADDED"`))
			return nil
		},
	)
	if err != nil && ctx.Err() != nil {
		over, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		begun.Stopped = true
		return errors.Join(err, d.keep(over, e, say, begun))
	}
	if err != nil {
		return err
	}
	return d.keep(ctx, e, say, out)
}

func (d watchDoer) keep(ctx context.Context, e steps.Env, say steps.Progress, r watched) error {
	text, err := yaml.Marshal(r)
	if err != nil {
		return err
	}
	return d.trial().keep(ctx, e, say, map[string]string{"watched.yaml": string(text)})
}

// held keeps the watch open for the duration long. It retries after a 403, because the API server might not have loaded
// a new account's permissions yet. It also retries if the watch ends at once, because a proxy that has just been
// replaced ends its connections.
func held(
	ctx context.Context, e steps.Env, at string, ca []byte, token masked.Value, long time.Duration,
) (probe.HoldReport, error) {
	query := url.Values{
		"watch": {"1"}, "fieldSelector": {"metadata.name=" + recordName(e, "watched")},
		"timeoutSeconds": {fmt.Sprint(int((long + 2*time.Minute).Seconds()))},
	}
	where := fmt.Sprintf("https://%s/api/v1/namespaces/%s/configmaps?%s", at, workloadNamespace(e), query.Encode())
	o := probe.HTTPOptions{
		Roots: ca, Header: http.Header{"Authorization": {"Bearer " + token.Reveal()}}, NoRedirects: true,
	}
	for try := 0; ; try++ {
		got, err := probe.Hold(ctx, where, long, o)
		cut := got.Ended && got.Held < 5*time.Second && try < 4
		if err != nil || got.Status != http.StatusForbidden && !cut || try == 10 {
			return got, err
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return got, context.Cause(ctx)
		}
	}
}
