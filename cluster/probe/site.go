package probe

import (
	"net"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// SameSite reports whether a browser treats two host names as the same site, because they have the same registrable
// domain. sessions.example.org and renku.example.org are the same site; a.github.io and b.github.io are not. An IP
// address, or a name that cannot be registered, is a site of its own.
func SameSite(a, b string) bool {
	a, b = strings.ToLower(strings.TrimSuffix(a, ".")), strings.ToLower(strings.TrimSuffix(b, "."))
	if a == b {
		return true
	}
	siteA, errA := publicsuffix.EffectiveTLDPlusOne(a)
	siteB, errB := publicsuffix.EffectiveTLDPlusOne(b)
	return errA == nil && errB == nil && siteA == siteB && net.ParseIP(a) == nil && net.ParseIP(b) == nil
}
