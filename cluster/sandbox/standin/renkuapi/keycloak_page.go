// The page where a user approves a sign-in, at Keycloak's verification_uri (RFC 8628, 3.3). It says that it is a
// stand-in.

package renkuapi

import (
	"fmt"
	"html"
	"net/http"
)

// find returns the sign-in with the given user code. It returns nil if it does not exist or has expired. The caller
// must hold the lock.
func (k *keycloak) find(userCode string) *device {
	for _, d := range k.devices {
		if d.userCode == userCode && k.now().Sub(d.started) <= deviceLife {
			return d
		}
	}
	return nil
}

func (k *keycloak) devicePage(w http.ResponseWriter, r *http.Request) {
	code := r.FormValue("user_code")
	k.mu.Lock()
	d := k.find(code)
	if d != nil {
		d.opened = true
	}
	k.mu.Unlock()
	if d == nil {
		page(
			w, http.StatusOK,
			`<form method="get"><p>The code that your terminal shows: <input name="user_code"> <button>Continue</button></p></form>`,
		)
		return
	}
	page(
		w, http.StatusOK, fmt.Sprintf(`<form method="post"><p>A terminal shows the code <b>%[1]s</b> to sign in.</p>
<input type="hidden" name="user_code" value="%[1]s">
<button name="decision" value="approve">Approve</button> <button name="decision" value="deny">Deny</button></form>`,
			html.EscapeString(code)),
	)
}

func (k *keycloak) decide(w http.ResponseWriter, r *http.Request) {
	decision := r.FormValue("decision")
	k.mu.Lock()
	d := k.find(r.FormValue("user_code"))
	known := d != nil && d.decision == "" && (decision == "approve" || decision == "deny")
	if known {
		d.decision = decision
	}
	k.mu.Unlock()
	if !known {
		page(w, http.StatusBadRequest, "<p>No sign-in is pending for this code.</p>")
		return
	}
	page(w, http.StatusOK, "<p>Done: "+decision+". You can go back to your terminal.</p>")
}

func page(w http.ResponseWriter, status int, content string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!DOCTYPE html>\n<html><head><title>Renku (stand-in)</title></head><body>\n"+
		"<h1>Renku (stand-in)</h1>\n<p>This is carrick's sandbox, not Renku.</p>\n%s\n</body></html>\n", content)
}
