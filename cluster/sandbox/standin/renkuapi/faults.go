// Faulty behaviours, with which tests check how carrick handles a broken Renku. A behaviour that affects one rule is
// implemented in that rule. This file implements those that affect every response.

package renkuapi

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

const slowness = 5 * time.Second // delay of each response with the behaviour slow

// Faults returns the faulty behaviours, each with a description.
func Faults() map[string]string {
	return map[string]string{
		"tls-null": "A newer Renku, which stores the TLS flag that it receives; an empty TLS Secret name next to it then " +
			"causes an error 500.",
		"not-admin":  "The user who signs in lacks the realm role renku-admin.",
		"html":       "Renku's API answers with HTML pages, alternately with status 200 and 502.",
		"slow":       "Renku's API takes 5 seconds for each response.",
		"old-renku":  "An old Renku, whose API knows neither the TLS flag nor service_account_name.",
		"name-taken": "The cluster's name in Renku already belongs to another cluster.",
	}
}

// misbehave delays or breaks the responses of Renku's API. It does not affect Keycloak's.
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
			page(w, status, "<p>A page where the API should answer.</p>")
			return
		}
		next.ServeHTTP(w, r)
	})
}
