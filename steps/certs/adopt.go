package certs

import (
	"context"
	"time"

	"carrick/cluster"
	"carrick/cluster/probe"
	"carrick/steps"
)

// Existing finds the Secret of a certificate in an existing setup. from names where the Secret was found. If s is nil,
// there is no such Secret.
type Existing func(context.Context, steps.Env) (s *cluster.Secret, from string, err error)

// AdoptDays is the Adopt function of the question for a certificate's validity in days. It returns the validity of
// the existing certificate.
func (x Existing) AdoptDays(ctx context.Context, e steps.Env) (any, string, error) {
	life, from, err := x.life(ctx, e, "tls.crt")
	if days := wholeDays(life); err == nil && days >= 2 && days <= 825 {
		return days, from, nil
	}
	return nil, "", err
}

// AdoptYears is the Adopt function of the question for a CA's validity in years. It returns the validity of the
// existing CA.
func (x Existing) AdoptYears(ctx context.Context, e steps.Env) (any, string, error) {
	life, from, err := x.life(ctx, e, "ca.crt")
	if years := wholeYears(life); err == nil && years >= 1 && years <= 30 {
		return years, from, nil
	}
	return nil, "", err
}

func (x Existing) life(ctx context.Context, e steps.Env, key string) (time.Duration, string, error) {
	s, from, err := x(ctx, e)
	if err != nil || s == nil || s.Data[key].IsZero() {
		return 0, "", err
	}
	chain, err := probe.ParseCerts([]byte(s.Data[key].Reveal()))
	if err != nil {
		return 0, "", nil // a check reports the unreadable certificate
	}
	return Life(chain[0]), from, nil
}
