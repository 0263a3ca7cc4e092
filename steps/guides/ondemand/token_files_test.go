package ondemand

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"carrick/cluster/bearer"
	"carrick/cluster/masked"
	"carrick/steps"
)

// tokenOf returns a token with the given claims and an invalid signature.
func tokenOf(t *testing.T, claims map[string]any) masked.Value {
	t.Helper()
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	enc := base64.RawURLEncoding
	return masked.New(
		enc.EncodeToString([]byte(`{"alg":"RS256"}`)) + "." + enc.EncodeToString(body) + "." +
			enc.EncodeToString([]byte("x")),
	)
}

func TestWhichTokenMayStay(t *testing.T) {
	now := time.Now()
	claims := func(left, made time.Duration, uid string) map[string]any {
		c := map[string]any{"sub": accountUser, "kubernetes.io": map[string]any{"serviceaccount": map[string]any{"uid": uid}}}
		if made > 0 {
			c["exp"], c["iat"] = now.Add(left).Unix(), now.Add(left-made).Unix()
		}
		return c
	}
	fresh := tokenOf(t, claims(24*time.Hour, 24*time.Hour, "one"))
	for name, c := range map[string]struct {
		have    map[string]any
		fresh   masked.Value
		renewed bool
		stays   bool
	}{
		"renewed a while ago":          {claims(20*time.Hour, 24*time.Hour, "one"), fresh, true, true},
		"nothing to compare it with":   {claims(20*time.Hour, 24*time.Hour, "one"), masked.Value{}, true, true},
		"about to end":                 {claims(time.Hour, 24*time.Hour, "one"), fresh, true, false},
		"ended":                        {claims(-time.Hour, 24*time.Hour, "one"), fresh, true, false},
		"short, and half of it left":   {claims(31*time.Minute, time.Hour, "one"), fresh, true, true},
		"short, and less left":         {claims(29*time.Minute, time.Hour, "one"), fresh, true, false},
		"of an account before":         {claims(20*time.Hour, 24*time.Hour, "two"), fresh, true, false},
		"of an account without a name": {claims(20*time.Hour, 24*time.Hour, ""), fresh, true, true},
		"it ends, and nothing renews":  {claims(20*time.Hour, 24*time.Hour, "one"), fresh, false, false},
		"it does not end":              {claims(0, 0, "one"), fresh, false, true},
		"of somebody else":             {map[string]any{"sub": "system:serviceaccount:a:b"}, fresh, true, false},
	} {
		if got := fits([]byte(tokenOf(t, c.have).Reveal()+"\n"), c.fresh, c.renewed, now); got != c.stays {
			t.Errorf("%s: it stays: %v", name, got)
		}
	}
	for _, have := range []string{"", "\n", "error: Forbidden", "a.b.c"} {
		if fits([]byte(have), fresh, true, now) || isRootsToken([]byte(have)) {
			t.Errorf("%q stays", have)
		}
	}
	if !isRootsToken([]byte(tokenOf(t, claims(-time.Hour, time.Hour, "two")).Reveal())) {
		t.Error("a token that has ended is not taken for root's")
	}
}

func TestWhenTheTokenIsLookedAtAgain(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	for name, c := range map[string]struct {
		left    time.Duration
		renewed bool
		want    steps.Status
		again   time.Duration // from now; 0: not by time
		words   string
	}{
		"long":        {20 * time.Hour, true, steps.Pass, 18 * time.Hour, "is valid until"},
		"near":        {90 * time.Minute, true, steps.Warn, 90 * time.Minute, "within two renewal intervals"},
		"ended":       {-time.Second, true, steps.Fail, 0, "can no longer be used to request a new token"},
		"not renewed": {20 * time.Hour, false, steps.Fail, 20 * time.Hour, "nothing renews it"},
	} {
		r := lasts(bearer.Token{Expires: now.Add(c.left)}, rootToken, time.Hour, c.renewed, now, "by hand")
		if r.Status != c.want || !strings.Contains(r.Found, c.words) || (c.again == 0) != r.Again.IsZero() ||
			c.again != 0 && !r.Again.Equal(now.Add(c.again)) {
			t.Errorf("%s: %+v", name, r)
		}
		if r.Status != steps.Pass && r.Fix == "" {
			t.Errorf("%s: there is no fix", name)
		}
	}
	if r := lasts(bearer.Token{}, rootToken, time.Hour, false, now, ""); r.Status != steps.Pass {
		t.Errorf("a token without an end: %+v", r)
	}
}

func TestWhatWasGranted(t *testing.T) {
	for _, c := range []struct {
		hours int
		got   time.Duration
		want  steps.Status
		words string // of the finding and the fix
	}{
		{24, 24 * time.Hour, steps.Pass, "an outage can last up to 23 h"},
		{24, 24*time.Hour - time.Minute, steps.Pass, ""},
		{24, 24*time.Hour - time.Minute - time.Second, steps.Warn, "set token.hours to 23"},
		{24, 2 * time.Hour, steps.Warn, "An outage can last up to 1 h; set token.hours to 2"},
		{
			24, time.Hour, steps.Fail,
			"can expire before it is renewed; set token.hours to 2, so that the token is renewed every 15 minutes",
		},
		{2, time.Hour, steps.Warn, "An outage can last up to 45 min"},
		{24, 10 * time.Minute, steps.Fail, "token.kind to non-expiring"},
	} {
		r := wasGranted(c.got, renewal{Hours: c.hours}, rootToken)
		if r.Status != c.want || !strings.Contains(r.Found+"; "+r.Fix, c.words) {
			t.Errorf("%d h, got %s: %+v", c.hours, c.got, r)
		}
	}
}
