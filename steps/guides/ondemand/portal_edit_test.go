package ondemand

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPortalIsEditedInPlace(t *testing.T) {
	hook := portalSetting{[]string{"pun_pre_hook_root_cmd"}, "/hook"}
	token := portalSetting{[]string{"oidc_settings", "OIDCPassRefreshToken"}, "On"}
	for _, tc := range []struct {
		situation, have, want string
		settings              []portalSetting
		refused               bool
	}{
		{
			situation: "nothing stands", have: "", settings: []portalSetting{hook, token},
			want: "pun_pre_hook_root_cmd: '/hook'\noidc_settings:\n  OIDCPassRefreshToken: 'On'\n",
		},
		{
			situation: "as shipped, all of it commented out", settings: []portalSetting{hook, token},
			have: "---\n#\n# Example:\n#    pun_pre_hook_root_cmd: '/x'\n#pun_pre_hook_root_cmd: null\n\n# " +
				"Additional\n#oidc_settings: {}\n\n# end\n",
			want: "---\n#\n# Example:\n#    pun_pre_hook_root_cmd: '/x'\n#pun_pre_hook_root_cmd: null\npun_pre_hook_root_cmd: " +
				"'/hook'\n\n# Additional\n#oidc_settings: {}\noidc_settings:\n  OIDCPassRefreshToken: 'On'\n\n# end\n",
		},
		{
			situation: "it is replaced with its comment", settings: []portalSetting{hook},
			have: "servername: a\npun_pre_hook_root_cmd: /old   # ours\nport: 443\n",
			want: "servername: a\npun_pre_hook_root_cmd: '/hook' # ours\nport: 443\n",
		},
		{
			situation: "null", settings: []portalSetting{hook}, have: "pun_pre_hook_root_cmd: null # none\na: 1\n",
			want: "pun_pre_hook_root_cmd: '/hook' # none\na: 1\n",
		},
		{
			situation: "no value", settings: []portalSetting{hook}, have: "pun_pre_hook_root_cmd:\na: 1\n",
			want: "pun_pre_hook_root_cmd: '/hook'\na: 1\n",
		},
		{
			situation: "it says so already", settings: []portalSetting{hook, token},
			have: "pun_pre_hook_root_cmd: \"/hook\"\noidc_settings: {OIDCPassRefreshToken: On}",
			want: "pun_pre_hook_root_cmd: \"/hook\"\noidc_settings: {OIDCPassRefreshToken: On}",
		},
		{
			situation: "true is on", settings: []portalSetting{token}, have: "oidc_settings:\n  OIDCPassRefreshToken: true\n",
			want: "oidc_settings:\n  OIDCPassRefreshToken: true\n",
		},
		{
			situation: "among others", settings: []portalSetting{token},
			have: "oidc_settings:\n    # claims\n    OIDCPassClaimsAs: environment\nport: 443\n",
			want: "oidc_settings:\n    OIDCPassRefreshToken: 'On'\n    # claims\n    OIDCPassClaimsAs: environment\nport: 443\n",
		},
		{
			situation: "off among others", settings: []portalSetting{token},
			have: "oidc_settings:\n  OIDCPassRefreshToken: \"Off\" # no\n  B: c\n",
			want: "oidc_settings:\n  OIDCPassRefreshToken: 'On' # no\n  B: c\n",
		},
		{
			situation: "an empty mapping", settings: []portalSetting{token}, have: "oidc_settings: {} # none\na: b\n",
			want: "oidc_settings: # none\n  OIDCPassRefreshToken: 'On'\na: b\n",
		},
		{
			situation: "a mapping on one line", settings: []portalSetting{token}, have: "oidc_settings: {A: b}\n",
			want: "oidc_settings: {OIDCPassRefreshToken: 'On', A: b}\n",
		},
		{
			situation: "a value of many lines", settings: []portalSetting{hook},
			have: "pun_pre_hook_root_cmd: >\n  /old\n  more\n", refused: true,
		},
		{
			situation: "off in a mapping on one line", settings: []portalSetting{token},
			have: "oidc_settings: {OIDCPassRefreshToken: 'Off'}\n", refused: true,
		},
		{situation: "no YAML", settings: []portalSetting{hook}, have: "a: [\n", refused: true},
		{
			situation: "no line end at the end", settings: []portalSetting{hook}, have: "a: b",
			want: "a: b\npun_pre_hook_root_cmd: '/hook'\n",
		},
	} {
		t.Run(tc.situation, func(t *testing.T) {
			got, err := withPortalSettings(tc.have, tc.settings)
			if d := cmp.Diff(tc.want, got); d != "" || (err != nil) != tc.refused {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
}
