package ondemand

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Diffs hide values that can be secret in files that carrick edits.
func TestSecretsAreHiddenInDiffs(t *testing.T) {
	env := "# comment\n# the secret is " +
		"s3cret\nNAMESPACE_PREFIX=user-\nCLIENT_SECRET='s3cret'\nOURS=s3cret\ns3cret\nCLIENT_SECRET=changeme\n  CLIENT_SECRET=s3cret more\nIMAGE_PULL_SECRET=\"pull\"\n"
	want := "# comment\n# (hidden)\nNAMESPACE_PREFIX=user-\nCLIENT_SECRET=(hidden)\nOURS=(hidden)\n(hidden)\nCLIENT_SECRET=changeme\nCLIENT_SECRET=(hidden)\nIMAGE_PULL_SECRET=\"pull\"\n"
	if d := cmp.Diff(want, redactEnv(env)); d != "" {
		t.Error(d)
	}
	portal := `---
servername: portal.example.org
oidc_client_secret: s3cret
#oidc_client_secret: s3cret
"oidc_crypto_passphrase": s3cret
dex:
  connectors:
    - type: ldap
      config:
        bindPW: s3cret
        rootCA: |
          s3cret
    - {bindPW: s3cret}
oidc_settings:
  OIDCPassRefreshToken: 'On'
  OIDCClientSecret: s3cret
oidc_settings: {OIDCClientSecret: s3cret}
pun_pre_hook_exports: 'OIDC_ACCESS_TOKEN'
# the password is s3cret
# words
`
	got := redactPortal(portal)
	if strings.Contains(got, "s3cret") || !strings.Contains(got, "pun_pre_hook_exports: 'OIDC_ACCESS_TOKEN'") ||
		!strings.Contains(got, "OIDCPassRefreshToken: 'On'") || !strings.Contains(got, "# words") {
		t.Error(got)
	}
	if strings.Count(got, "\n") != strings.Count(portal, "\n") {
		t.Error("lines are lost")
	}
}
