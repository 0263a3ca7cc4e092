package ondemand

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode"
)

// Files of the token renewal. renewName is also the syslog tag of the renewal script.
const (
	renewName    = "carrick-ondemand-token"
	renewTimer   = "/etc/systemd/system/" + renewName + ".timer"
	renewService = "/etc/systemd/system/" + renewName + ".service"
	renewCron    = "/etc/cron.d/" + renewName
)

type renewal struct {
	Kubectl, Kubeconfig, Token string // paths on the web node
	Hours                      int    // requested lifetime of each token
}

// every returns the renewal interval.
func (r renewal) every() time.Duration {
	if r.Hours < 4 {
		return 15 * time.Minute
	}
	return time.Hour
}

// outage returns how long the web node or the cluster can be down before the token expires. An expired token cannot be
// renewed, because the renewal authenticates with it.
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

func validPath(p string) error {
	switch {
	case !path.IsAbs(p) || path.Clean(p) != p || p == "/":
		return fmt.Errorf("%q is not a clean absolute path", p)
	case strings.ContainsFunc(p, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }):
		return errors.New("the path contains a line break or another control character")
	}
	return nil
}

func shellQuoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// unitQuoted quotes p so that systemd reads it as one word and expands no specifiers.
func unitQuoted(p string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(p) + `"`
}

// script returns the shell script that renews the token. In the script, kubectl writes the token directly to a file, so
// that the token never appears in an argument, a variable or a log.
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

// service returns the systemd unit that runs the script. ExecStart runs /bin/sh, because SELinux does not allow systemd
// to execute a file in a configuration directory. The unit restricts the script to writing in the token's directory and
// using the network. NoNewPrivileges is not set, because SELinux would then need a rule for the domain transition. The
// script runs as root anyway.
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

// timer returns the systemd timer that starts the service. If the machine was off at the scheduled time, the timer
// starts the service at the next boot.
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
