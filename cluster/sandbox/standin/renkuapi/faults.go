// Faults in Renku. Tests check how carrick handles them. This file implements the faults that affect every response.
// Each of the other faults is implemented in the rule that it breaks.

package renkuapi

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

const slowness = 5 * time.Second // delay of each response with the fault slow

// Faults returns descriptions of the faults, by name.
func Faults() map[string]string {
	return map[string]string{
		"tls-null": "Renku is newer and stores the TLS flag that it receives. Together with the flag, an empty TLS Secret " +
			"name causes error 500.",
		"not-admin":  "The user who signs in lacks the realm role renku-admin.",
		"html":       "Renku's API returns HTML pages, alternately with status 200 and 502.",
		"slow":       "Renku's API responds to each request after 5 seconds.",
		"old-renku":  "Renku is old: its API supports neither the TLS flag nor service_account_name.",
		"name-taken": "The cluster's name in Renku already belongs to another cluster.",
	}
}

// misbehave delays or breaks the responses from Renku's API. It does not affect Keycloak.
func misbehave(next http.Handler, faults map[string]bool, c clock) http.Handler {
	answers := atomic.Int64{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ours := strings.HasPrefix(r.URL.Path, apiPath+"/")
		if ours && faults["slow"] {
			select {
			case <-r.Context().Done():
				return
			case <-c.after(slowness):
			}
		}
		if ours && faults["html"] {
			status := http.StatusOK
			if answers.Add(1)%2 == 0 {
				status = http.StatusBadGateway
			}
			page(w, status, "<p>A page instead of an API response.</p>")
			return
		}
		next.ServeHTTP(w, r)
	})
}
