package ondemand

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"carrick/steps"
	"carrick/steps/check"
)

// renewalChanged verifies that systemd uses the unit files that carrick wrote and that no drop-in changes them.
func renewalChanged(ctx context.Context, e steps.Env) steps.Result {
	for _, at := range []string{renewService, renewTimer} {
		unit := path.Base(at)
		used, masked, err := check.UnitFile(ctx, e.Host, unit)
		if err != nil {
			return steps.Errored(err)
		}
		if masked {
			return steps.Failed(
				unit+" is masked, so systemd never starts it",
				onWebNode(check.Unmask(used, unit)+"    # then "+e.ApplyStep("token")),
			)
		}
		if there, err := fileExists(ctx, e, at); err == nil && there && used != at {
			return steps.Failed(fmt.Sprintf("systemd uses %s instead of %s", used, at),
				onWebNode("systemctl cat "+unit+"    # then rm "+steps.Quoted(used)+" && systemctl daemon-reload"))
		}
		files, err := check.DropIns(ctx, e.Host, unit)
		if err != nil {
			return steps.Errored(err)
		}
		for _, dropIn := range files {
			text, err := e.Host.Read(ctx, dropIn)
			if err != nil {
				return steps.Errored(err)
			}
			if keys := changedKeys(string(text), dropIn, unit); len(keys) > 0 {
				return steps.Warned(fmt.Sprintf("%s changes %s of %s", dropIn, shownWord(shortList(keys, ", ")), unit),
					onWebNode("systemctl cat "+unit+"    # if this is not intended: "+without(dropIn, unit)+
						" && systemctl daemon-reload"))
			}
		}
	}
	return steps.Passed("")
}

// ownDropIn reports whether the drop-in applies only to unit.
func ownDropIn(at, unit string) bool { return path.Base(path.Dir(at)) == unit+".d" }

// breaking matches the settings that can delay the renewal or make it fail. It omits settings from common drop-ins that
// apply to several units: LXD and Incus ship service.d/zzz-lxc-service.conf, and Fedora ships
// service.d/10-timeout-abort.conf.
var breaking = regexp.MustCompile(`^((Exec|Condition|Assert|Environment)\w*|User|Group|Type|Unit|Persistent|` +
	`PassEnvironment|UnsetEnvironment|WorkingDirectory|RootDirectory|` +
	`On((Active|Boot|Startup|UnitActive|UnitInactive)Sec|Calendar|ClockChange|TimezoneChange))$`)

// restricting matches settings that can make the renewal fail unless their value is in disabling.
var restricting = regexp.MustCompile(
	`^(ProtectSystem|ProtectHome|ReadOnlyPaths|InaccessiblePaths|PrivateNetwork|IPAddressDeny|RestrictAddressFamilies)$`)

// disabling lists the lower-case values that turn off a restricting setting.
var disabling = []string{"", "no", "false", "off", "0"}

// changedKeys returns the keys that the drop-in sets. It omits the values, because a value can contain a proxy
// password. If the drop-in applies to several units, changedKeys returns only the keys that can make the renewal fail.
func changedKeys(text, at, unit string) (keys []string) {
	for _, l := range check.UnitLines(text) {
		key, value, _ := strings.Cut(l, "=")
		key = strings.TrimSpace(key)
		restricts := restricting.MatchString(key) && !slices.Contains(disabling, strings.ToLower(strings.TrimSpace(value)))
		if !slices.Contains(keys, key) && (ownDropIn(at, unit) || restricts || breaking.MatchString(key)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// without returns the command that stops the drop-in from changing unit. If the drop-in applies only to unit, the
// command deletes it. Otherwise the command masks it for unit with a symlink to /dev/null.
func without(at, unit string) string {
	if ownDropIn(at, unit) {
		return "rm " + steps.Quoted(at)
	}
	folder := path.Dir(path.Dir(at))
	if strings.HasPrefix(folder, "/usr/") || strings.HasPrefix(folder, "/lib/") {
		folder = path.Dir(renewTimer)
	}
	folder = path.Join(folder, unit+".d")
	return "mkdir -p " + folder + " && ln -s /dev/null " + steps.Quoted(path.Join(folder, path.Base(at)))
}
