package ondemand

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode"
)

// Where the renewal stands, and what it calls itself in the log.
const (
	renewName    = "carrick-ondemand-token"
	renewTimer   = "/etc/systemd/system/" + renewName + ".timer"
	renewService = "/etc/systemd/system/" + renewName + ".service"
	renewCron    = "/etc/cron.d/" + renewName
)

// renewal is how root's token is renewed.
type renewal struct {
	Kubectl, Kubeconfig, Token string // paths on the web node
	Hours                      int    // for which a token is asked for
}

// every is how often: an hour, or so often that a short token is renewed four
// times before it ends.
func (r renewal) every() time.Duration {
	if r.Hours < 4 {
		return 15 * time.Minute
	}
	return time.Hour
}

// outage is how long the web node or the cluster may be away before root's token
// ends, so that it can't renew itself any more.
func (r renewal) outage() time.Duration {
	return time.Duration(r.Hours)*time.Hour - r.every()
}

func (r renewal) valid() error {
	for what, p := range map[string]string{
		"kubectl.path": r.Kubectl, "the kubeconfig": r.Kubeconfig, "the token file": r.Token,
	} {
		if err := validPath(p); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if r.Hours < 1 || r.Hours > 24*365 {
		return fmt.Errorf("token.hours: %d is not between 1 and %d", r.Hours, 24*365)
	}
	return nil
}

// validPath says what is wrong with a path that goes into a script.
func validPath(p string) error {
	switch {
	case !path.IsAbs(p) || path.Clean(p) != p || p == "/":
		return fmt.Errorf("%q is not a clean absolute path", p)
	case strings.ContainsFunc(p, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }):
		return errors.New("the path contains a line break or another control character")
	}
	return nil
}

// shellQuoted is a word between single quotes, in which a shell changes nothing.
func shellQuoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// unitQuoted is a path as a list in a unit file takes it: one word, in which systemd replaces nothing.
func unitQuoted(p string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(p) + `"`
}

// script is the program that renews the token. The token passes from kubectl into
// a file and from there nowhere else: not into an argument, a variable or a log.
func (r renewal) script() (string, error) {
	if err := r.valid(); err != nil {
		return "", err
	}
	return strings.Join([]string{
		"#!/bin/sh",
		"# Renews the token by which root on this web node reaches Kubernetes for Open OnDemand.",
		"# Written by carrick. Run by root " + r.often() + ", with the token that it renews. If no renewal",
		fmt.Sprintf(
			"# succeeds for %s, the token expires, and an admin of the cluster must create a new one.",
			hoursAndMinutes(r.outage()),
		),
		"set -eu",
		"umask 077",
		"",
		"kubectl=" + shellQuoted(r.Kubectl),
		"kubeconfig=" + shellQuoted(r.Kubeconfig),
		"token=" + shellQuoted(r.Token),
		"",
		"failed() {",
		`	echo "$1" >&2`,
		`	logger -t ` + renewName + ` -p daemon.err -- "$1" || true`,
		"	exit 1",
		"}",
		"",
		`new=$(mktemp "$token.XXXXXX") || failed "no file can be created next to $token: the token was not renewed"`,
		`trap 'rm -f "$new"' EXIT`,
		`trap 'exit 1' HUP INT TERM`,
		"",
		fmt.Sprintf(
			`if ! said=$("$kubectl" --kubeconfig="$kubeconfig" --request-timeout=30s create token %s --namespace=%s --duration=%dh 2>&1 >"$new"); then`,
			account, namespace, r.Hours,
		),
		`	failed "the token in $token was not renewed: $said"`,
		"fi",
		`grep -Eq '^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$' "$new" || failed "the token in $token was not renewed: the output of kubectl is not a token"`,
		`sync "$new" || true`,
		`mv -f "$new" "$token" || failed "the token in $token was not renewed: it cannot be replaced"`,
		`[ -z "$said" ] || logger -t ` + renewName + ` -p daemon.warning -- "the token in $token was renewed: $said" || true`,
		"",
	}, "\n"), nil
}

func (r renewal) often() string {
	if r.every() == time.Hour {
		return "every hour"
	}
	return fmt.Sprintf("every %d minutes", int(r.every().Minutes()))
}

func hoursAndMinutes(d time.Duration) string {
	h, m := int(d.Hours()), int(d.Minutes())%60
	switch {
	case h == 0:
		return fmt.Sprintf("%d min", m)
	case m == 0:
		return fmt.Sprintf("%d h", h)
	}
	return fmt.Sprintf("%d h %d min", h, m)
}

// service is the unit that runs the script. It names a shell, so that SELinux sees a shell that reads a file, not a
// program in a folder of settings. The script can write next to the token alone and reach the network. NoNewPrivileges
// is left out: SELinux would need a rule for the transition of domains, and the script runs as root anyway.
func (r renewal) service() string {
	return strings.Join([]string{
		"# Written by carrick.",
		"[Unit]",
		"Description=Renew the token by which root reaches Kubernetes for Open OnDemand",
		"Wants=network-online.target",
		"After=network-online.target",
		"",
		"[Service]",
		"Type=oneshot",
		"ExecStart=/bin/sh " + renewScript,
		"UMask=0077",
		"TimeoutStartSec=2min",
		"ProtectSystem=strict",
		"ProtectHome=read-only",
		"ReadWritePaths=" + unitQuoted(path.Dir(r.Token)),
		"PrivateTmp=yes",
		"PrivateDevices=yes",
		"ProtectKernelTunables=yes",
		"ProtectKernelModules=yes",
		"ProtectControlGroups=yes",
		"RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
		"RestrictNamespaces=yes",
		"RestrictRealtime=yes",
		"RestrictSUIDSGID=yes",
		"LockPersonality=yes",
		"CapabilityBoundingSet=CAP_DAC_OVERRIDE",
		"",
	}, "\n")
}

// timer runs the service. It makes up for what it missed while the machine was off.
func (r renewal) timer() string {
	calendar := "hourly"
	if r.every() < time.Hour {
		calendar = fmt.Sprintf("*:0/%d", int(r.every().Minutes()))
	}
	return strings.Join([]string{
		"# Written by carrick.",
		"[Unit]",
		"Description=Renew the token by which root reaches Kubernetes for Open OnDemand, " + r.often(),
		"",
		"[Timer]",
		"OnCalendar=" + calendar,
		"RandomizedDelaySec=2min",
		"Persistent=true",
		"",
		"[Install]",
		"WantedBy=timers.target",
		"",
	}, "\n")
}

// cron is the table that runs the script instead.
func (r renewal) cron() string {
	at := "17 * * * *"
	if r.every() < time.Hour {
		at = fmt.Sprintf("*/%d * * * *", int(r.every().Minutes()))
	}
	return strings.Join([]string{
		"# Written by carrick: renews the token by which root reaches Kubernetes for Open OnDemand.",
		"SHELL=/bin/sh",
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
		at + " root /bin/sh " + renewScript,
		"",
	}, "\n")
}
