package ondemand

import (
	"context"
	"regexp"
	"strings"

	"carrick/cluster/diff"
	"carrick/steps"
	"carrick/steps/action"
)

// editedFile is a file in which carrick sets some values. In the diff, redact hides values that can be secret.
type editedFile struct {
	action.File
	redact func(string) string
}

// Plan returns the plan of File with secrets hidden in the diff.
func (f editedFile) Plan(ctx context.Context, e steps.Env) (steps.Change, error) {
	c, err := f.File.Plan(ctx, e)
	if err != nil {
		return c, err
	}
	want, err := f.Content(ctx, e)
	if err != nil {
		return c, err
	}
	for i := range c.Items {
		if c.Items[i].Diff == "" {
			continue
		}
		have, err := e.Host.Read(ctx, f.Path)
		if err != nil {
			have = nil // a new file
		}
		c.Items[i].Diff = diff.Text(f.redact(string(have)), f.redact(want.Reveal()))
	}
	return c, nil
}

var secretKey = regexp.MustCompile(`(?i)(secret|passw|passphrase|bindpw|token|private|credential)`)

// redactEnv hides the potentially secret values in hook.env, and the values of all keys that upstream's hooks do not
// read.
func redactEnv(text string) string {
	f := parseEnv(text)
	for i, l := range f.lines {
		k := envKeyOf(l.key)
		switch {
		case l.key == "" && !strings.HasPrefix(l.text, "#") && strings.TrimSpace(l.text) != "":
			f.lines[i].text = "(hidden)"
		case strings.HasPrefix(l.text, "#") && secretKey.MatchString(l.text):
			f.lines[i].text = "# (hidden)"
		case l.odd != "": // the line can contain more than the key's value
			f.lines[i].text = l.key + "=(hidden)"
		case l.key == "" || k != nil && !k.secret:
		case l.value == "" && l.odd == "" || k != nil && l.value == k.ships:
		default:
			f.lines[i].text = l.key + "=(hidden)"
		}
	}
	return f.String()
}

var portalLine = regexp.MustCompile(`^(\s*(?:- )?#?\s*["']?([A-Za-z_][\w.-]*)["']?\s*:\s*)(\S.*)$`)

// shownPortal matches the keys of ood_portal.yml whose values are shown: the keys that carrick sets, and common keys
// without secrets.
var shownPortal = regexp.MustCompile(
	`^(pun_pre_hook_root_cmd|pun_pre_hook_exports|OIDCPassRefreshToken|oidc_settings|node_uri|rnode_uri|servername|port|ssl|oidc_uri|oidc_provider_metadata_url|oidc_client_id|oidc_scope|oidc_remote_user_claim|pun_max_retries|pun_uri|nginx_uri)$`,
)

// redactPortal hides all values in ood_portal.yml except those of the keys in shownPortal. A hidden value can be an
// OIDC client secret or the password of a directory server.
func redactPortal(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		trimmed := strings.TrimSpace(l)
		m := portalLine.FindStringSubmatch(l)
		switch {
		case trimmed == "" || trimmed == "---":
		case m != nil && shownPortal.MatchString(m[2]) && !strings.ContainsAny(m[3], "{["):
		case m != nil:
			lines[i] = m[1] + "(hidden)"
		case strings.HasPrefix(trimmed, "#") && !secretKey.MatchString(trimmed):
		case strings.HasSuffix(trimmed, ":"):
		default:
			lines[i] = l[:len(l)-len(strings.TrimLeft(l, " "))] + "(hidden)"
		}
	}
	return strings.Join(lines, "\n")
}
