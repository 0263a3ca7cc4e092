package ondemand

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"carrick/cluster/masked"
	"carrick/steps"
)

// updatePortal is upstream's program that generates Apache's configuration from ood_portal.yml.
const updatePortal = "/opt/ood/ood-portal-generator/sbin/update_ood_portal"

// tokenExports lists the environment variables from the portal login that set-k8s-creds.sh requires.
var tokenExports = []string{"OIDC_ACCESS_TOKEN", "OIDC_REFRESH_TOKEN"}

// apacheFiles lists the files that update_ood_portal writes on Red Hat and on Debian.
var apacheFiles = []string{"/etc/httpd/conf.d/ood-portal.conf", "/etc/apache2/sites-available/ood-portal.conf"}

// openPortal returns the text and the parsed values of ood_portal.yml. If the file does not exist, both are empty, and
// upstream uses its defaults.
func openPortal(ctx context.Context, e steps.Env) (text string, values map[string]any, err error) {
	b, err := e.Host.Read(ctx, portalFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", map[string]any{}, nil
	}
	if err != nil {
		return "", nil, err
	}
	values, err = portalValues(string(b))
	return string(b), values, err
}

func portalText(ctx context.Context, e steps.Env) (masked.Value, error) {
	text, values, err := openPortal(ctx, e)
	if err != nil {
		return masked.Value{}, err
	}
	text, err = withPortalSettings(text, portalSettings(e, values))
	return masked.New(text), err
}

// portalSettings returns the settings that carrick writes to ood_portal.yml. It keeps existing values of node_uri and
// rnode_uri, and existing entries of pun_pre_hook_exports.
func portalSettings(e steps.Env, have map[string]any) []portalSetting {
	out := []portalSetting{{[]string{"pun_pre_hook_root_cmd"}, preHook}}
	for _, key := range []string{"node_uri", "rnode_uri"} {
		if portalUnset(have[key]) {
			out = append(out, portalSetting{[]string{key}, "/" + strings.TrimSuffix(key, "_uri")})
		}
	}
	if !withOIDC(e) {
		return out
	}
	exports := exported(have)
	for _, name := range tokenExports {
		if !slices.Contains(exports, name) {
			exports = append(exports, name)
		}
	}
	return append(
		out, portalSetting{[]string{"pun_pre_hook_exports"}, strings.Join(exports, ",")},
		portalSetting{[]string{"oidc_settings", "OIDCPassRefreshToken"}, "On"},
	)
}

// portalUnset reports whether upstream's Ruby code treats v as missing.
func portalUnset(v any) bool { return v == nil || v == "" || v == false }

// exported returns the variables in pun_pre_hook_exports, which the portal passes to the hook.
func exported(values map[string]any) []string {
	text, _ := values["pun_pre_hook_exports"].(string)
	var out []string
	for _, w := range strings.Split(text, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

// apache returns the web server's systemd unit and its configuration file. file is "" if update_ood_portal has not
// written the configuration yet.
func apache(ctx context.Context, e steps.Env) (unit, file string, err error) {
	for _, f := range apacheFiles {
		there, err := fileExists(ctx, e, f)
		if err != nil {
			return "", "", err
		}
		if there {
			return portalUnit(f), f, nil
		}
	}
	debian, err := fileExists(ctx, e, "/etc/apache2")
	if debian {
		return "apache2", "", err
	}
	return "httpd", "", err
}

func portalUnit(file string) string {
	if strings.HasPrefix(file, "/etc/apache2/") {
		return "apache2"
	}
	return "httpd"
}
