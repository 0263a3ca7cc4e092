// Behaviours that can be switched on, so that it shows what carrick makes of a
// Renku that is not as it should be. Where a behaviour is one of a rule, the
// rule asks for it; those that spoil every answer stand here.

package renkuapi

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

const slowness = 5 * time.Second // of each answer, with the behaviour slow

// Faults returns the behaviours that can be switched on: name to one sentence.
func Faults() map[string]string {
	return map[string]string{
		"tls-null": "A newer Renku, which stores the TLS flag that it is sent; an empty TLS secret name beside it is " +
			"then an error 500.",
		"not-admin":  "Who signs in lacks the realm role renku-admin.",
		"html":       "Renku's API answers with a page in HTML, with 200 and 502 in turns.",
		"slow":       "Renku's API takes 5 seconds for each answer.",
		"old-renku":  "An old Renku, whose API knows neither the TLS flag nor service_account_name.",
		"name-taken": "The name that a cluster is to be registered under belongs to another cluster already.",
	}
}

// misbehave holds up or spoils the answers of Renku's API; Keycloak's are left
// alone.
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
