package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"carrick/cluster/clean"
	"carrick/cluster/masked"
	"carrick/cluster/tracked"
	"carrick/cluster/web"
	"carrick/steps"
	"carrick/steps/inventory"
	"carrick/steps/linkfile"
)

// SessionOptions configure a session.
type SessionOptions struct {
	Guide     *steps.Guide
	Link      *linkfile.Link
	Endpoints map[steps.Side]Endpoint
	Assets    fs.FS                   // the guide's assets directory
	Secrets   map[string]masked.Value // answers to secret questions, by key
	// Attended is true if a person sees the messages of actions and can do what they ask. If it is false, an action that
	// requires a person returns an error.
	Attended bool
	Log      *slog.Logger // nil discards the log
	Audit    *Audit       // nil if there is no audit log
}

// Session runs one guide between two sides, with or without a screen.
type Session struct {
	guide  *steps.Guide
	link   *linkfile.Link
	ends   map[steps.Side]Endpoint
	assets fs.FS
	looks  *tracked.Looks
	log    *slog.Logger
	audit  *Audit

	attended bool

	mu       sync.Mutex
	answers  steps.Given
	secrets  map[string]masked.Value
	webs     map[web.Address]*web.Client // opened so far
	answered chan struct{}               // closed and replaced when an answer changes
	passed   map[steps.Cell]time.Time    // when a cell was last good with the current answers
}

// NewSession starts a session. It sends no request yet.
func NewSession(o SessionOptions) *Session {
	s := &Session{
		guide: o.Guide, link: o.Link, ends: o.Endpoints, assets: o.Assets, log: o.Log, audit: o.Audit, attended: o.Attended,
		looks: tracked.NewLooks(), answers: steps.Given{}, secrets: map[string]masked.Value{},
		webs: map[web.Address]*web.Client{}, answered: make(chan struct{}),
		passed: map[steps.Cell]time.Time{},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for _, side := range steps.Sides {
		if h, own := o.Endpoints[side].PeerFile, o.Endpoints[side.Peer()].Cluster; h != nil && own != nil {
			h.own = own.UID
		}
	}
	for k, v := range o.Link.Answers {
		s.answers[k] = v
	}
	for k, v := range o.Secrets {
		s.secrets[k] = v
	}
	return s
}

func (s *Session) Guide() *steps.Guide { return s.guide }

func (s *Session) Link() *linkfile.Link { return s.link }

// Endpoint returns the cluster, host or peer file of a side.
func (s *Session) Endpoint(side steps.Side) Endpoint { return s.ends[side] }

// Close closes all connections.
func (s *Session) Close() {
	s.mu.Lock()
	for _, w := range s.webs {
		w.Close()
	}
	s.mu.Unlock()
	for _, e := range s.ends {
		e.Close()
	}
}

// Trace records what a probe used. Changed uses it to determine when to probe again.
type Trace struct {
	reads    *tracked.Trace
	answered <-chan struct{}
	at       time.Time
}

// Seen returns the time of the oldest read. If watching is not permitted, so that some reads are polled, polled is
// true.
func (t Trace) Seen() (at time.Time, polled bool) {
	if t.reads == nil {
		return t.at, false
	}
	return t.reads.Seen()
}

// Unwatched returns why some reads are polled although they could be watched. If there are none, it returns nil.
func (t Trace) Unwatched() error {
	if t.reads == nil {
		return nil
	}
	return t.reads.Unwatched()
}

// settleTime is the minimum time between two probes of one cell. It limits the number of probes during frequent writes.
const settleTime = 100 * time.Millisecond

// checkTimeout is the timeout of a check unless the request timeout of a cluster is longer.
const checkTimeout = 10 * time.Second

func (s *Session) checkTimeout() time.Duration {
	longest := checkTimeout
	for _, end := range s.ends {
		if end.Cluster != nil {
			longest = max(longest, end.Cluster.Timeout())
		}
	}
	return longest
}

// gracePeriod is how long a check can take to return after its context is done, on a busy machine.
const gracePeriod = time.Second

// Probe runs one check. After a panic or a timeout, or if a server does not answer, the status is Unknown. The check's
// reads are also recorded in a trace in ctx.
func (s *Session) Probe(ctx context.Context, c steps.Cell) (steps.Result, Trace) {
	check, step := s.guide.Check(c.Check)
	t := Trace{at: time.Now()}
	if check == nil || !check.On.Covers(c.Side) {
		return steps.Result{Status: steps.Unknown, Found: "the guide has no such check"}, t
	}
	parent := ctx
	ctx, t.reads = tracked.WithTrace(tracked.WithLooks(ctx, s.looks))
	defer func() { tracked.AbsorbInto(parent, t.reads) }()
	ctx, cancel := context.WithTimeout(ctx, s.checkTimeout())
	defer cancel()
	use := &usage{}
	env := s.probeEnv(ctx, c.Side, use)
	t.answered = use.answered
	r := s.judgeInTime(ctx, env, step, check)
	if err := use.sound(); err != nil {
		r = steps.Errored(err)
	} else if missing := use.unanswered(); len(missing) > 0 {
		r = steps.Skipped("%s", (&steps.MissingError{Questions: missing}).Error())
	}
	if ctx.Err() != nil && parent.Err() == nil { // a late result can be based on cancelled reads
		late := steps.Result{Status: steps.Unknown, Found: "no answer within " + s.checkTimeout().String(), Err: r.Err}
		if r.Status == steps.Unknown {
			late.Fix = r.Fix
		}
		r = late
		tracked.Expires(ctx, time.Now().Add(tracked.ErrorAge)) // cancelled reads can't trigger the next probe
	}
	r = overdue(check, s.sincePass(c, r, time.Now()), time.Now())
	if r.Fix == "" && (r.Status == steps.Fail || r.Status == steps.Warn) {
		r.Fix = s.fixCommand(check, env, r)
	}
	if r.Fix != "" && (r.Status == steps.Fail || r.Status == steps.Warn) {
		r.Fix = s.takesOver(ctx, env, r.Fix)
	}
	if !r.Again.IsZero() {
		tracked.Expires(ctx, r.Again)
	}
	r.Found, r.Fix = shortened(clean.Text(r.Found)), clean.Text(r.Fix)
	if r.Err != nil {
		s.log.Debug("check", "name", c.Check, "side", c.Side, "status", r.Status.String(), "err", r.Err)
	}
	return r, t
}

// mostFound is the maximum length of a finding in characters. A finding can quote untrusted text of any length.
const mostFound = 2000

func shortened(text string) string {
	if len(text) <= mostFound {
		return text
	}
	if r := []rune(text); len(r) > mostFound {
		return string(r[:mostFound]) + "…"
	}
	return text
}

// judgeInTime runs a check. If ctx is done first, it returns without the check's result. A check that ignores ctx
// therefore blocks nothing.
func (s *Session) judgeInTime(ctx context.Context, env steps.Env, step *steps.Step, check *steps.Check) steps.Result {
	judged := make(chan steps.Result, 1)
	go func() { judged <- s.judge(ctx, env, step, check) }()
	select {
	case r := <-judged:
		return r
	case <-ctx.Done():
	}
	select {
	case r := <-judged: // the check stopped because of ctx, and its result says why
		return r
	case <-time.After(gracePeriod):
		return steps.Errored(context.Cause(ctx))
	}
}

func (s *Session) judge(ctx context.Context, env steps.Env, step *steps.Step, check *steps.Check) (r steps.Result) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("check panicked", "name", check.Name, "panic", p, "stack", string(debug.Stack()))
			r = steps.Result{Status: steps.Unknown, Found: fmt.Sprintf("internal error in this check (please report): %v", p)}
		}
	}()
	if applies, answer := steps.Applies(s.guide, step, check, env); !applies {
		return steps.Result{Status: steps.Skip, Found: steps.NotAsked, Answer: clean.Text(answer)}
	}
	switch {
	case check.NotChecked != "":
		return steps.Skipped("not checked by carrick: %s", check.NotChecked)
	case s.ends[env.Side].PeerFile != nil:
		return s.ends[env.Side].PeerFile.verdict(ctx, check.Name)
	case s.ends[env.Side].absent():
		return steps.Skipped("%s", s.whyAbsent(env.Side))
	}
	r = check.Run(ctx, env)
	if r.Status == steps.Pass && check.Tried != nil {
		r = steps.Aged(ctx, env, check, r)
	}
	if mend, of := s.guide.FixingAction(check, env.Side); mend != nil {
		r.Unasked = !mend.Wanted(of, env)
	}
	r.Made = r.Status == steps.Fail && (r.Made || s.made(ctx, env, check, r))
	return r
}

// made reports whether the inventory shows that this link has run the action that fixes a check. If the inventory can't
// be read, made returns false.
func (s *Session) made(ctx context.Context, env steps.Env, check *steps.Check, r steps.Result) bool {
	act, _ := s.guide.Offer(check, env.Side, r)
	if act == nil || r.NotTried {
		return false
	}
	if !act.On.Covers(env.Side) {
		env = s.probeEnv(ctx, act.On, &usage{})
	}
	if env.Cluster == nil {
		return false
	}
	inv, err := inventory.Of(ctx, env)
	return err == nil && (len(inv.Actions[act.Name]) > 0 || inv.Notes[act.Name] != "")
}

func (s *Session) whyAbsent(side steps.Side) string {
	if why := s.ends[side].Absent; why != "" {
		return why
	}
	return fmt.Sprintf("the %s is not known here", s.guide.Sides[side].Name)
}

// fixCommand returns the command that applies the step whose action fixes a check, or "" if there is no such action.
func (s *Session) fixCommand(check *steps.Check, env steps.Env, r steps.Result) string {
	r.Unasked = false
	_, step := s.guide.Offer(check, env.Side, r)
	if step == nil {
		return ""
	}
	return env.ApplyStep(step.Name)
}

// Changed waits until something that a probe used has changed or is due. It returns nil then. If ctx is done first, it
// returns ctx's error.
func (s *Session) Changed(ctx context.Context, t Trace) error {
	if t.reads == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	if t.answered != nil {
		go func() { // returns when wait does
			select {
			case <-t.answered:
				cancel()
			case <-wait.Done():
			}
		}()
	}
	err := t.reads.Wait(wait)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	rest := time.NewTimer(time.Until(t.at.Add(settleTime)))
	defer rest.Stop()
	select {
	case <-rest.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Forget drops permission reviews and cached reads that can't be watched. The next probe then reads the current state.
func (s *Session) Forget() {
	s.looks.Forget("")
	for _, e := range s.ends {
		if e.Cluster != nil {
			e.Cluster.Retry()
		}
		if e.Host != nil {
			e.Host.Retry()
		}
	}
}

// usage records what a check used in addition to reads.
type usage struct {
	mu       sync.Mutex
	missing  []steps.Question
	failed   error // why a default could not be read
	answered <-chan struct{}
}

func (u *usage) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.failed == nil {
		u.failed = err
	}
}

// sound returns why a default could not be read. Results based on that default are void. A nil usage is sound.
func (u *usage) sound() error {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.failed
}

func (u *usage) unanswered() []steps.Question {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.missing)
}

func (u *usage) miss(q steps.Question) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !slices.ContainsFunc(u.missing, func(o steps.Question) bool { return o.Key == q.Key }) {
		u.missing = append(u.missing, q)
	}
}
