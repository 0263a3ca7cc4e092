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

// renewalChanged verifies that nothing but their own files changes the renewal's units.
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

// ownDropIn reports whether a drop-in applies only to this unit.
func ownDropIn(at, unit string) bool { return path.Base(path.Dir(at)) == unit+".d" }

// breaking matches the settings that can prevent the renewal from running on time or from succeeding. Drop-ins for
// several units often set others: LXD and Incus ship service.d/zzz-lxc-service.conf, and Fedora ships
// service.d/10-timeout-abort.conf.
var breaking = regexp.MustCompile(`^((Exec|Condition|Assert|Environment)\w*|User|Group|Type|Unit|Persistent|` +
	`PassEnvironment|UnsetEnvironment|WorkingDirectory|RootDirectory|` +
	`On((Active|Boot|Startup|UnitActive|UnitInactive)Sec|Calendar|ClockChange|TimezoneChange))$`)

// restricting matches settings that can break the renewal unless their value disables them.
var restricting = regexp.MustCompile(
	`^(ProtectSystem|ProtectHome|ReadOnlyPaths|InaccessiblePaths|PrivateNetwork|IPAddressDeny|RestrictAddressFamilies)$`)

// turnedOff are the values that disable a restricting setting.
var turnedOff = []string{"", "no", "false", "off", "0"}

// changedKeys returns the keys that a drop-in sets. It omits their values, because they can contain a proxy's password.
// For a drop-in of several units, it returns only the keys that can break the renewal.
func changedKeys(text, at, unit string) (keys []string) {
	for _, l := range check.UnitLines(text) {
		key, value, _ := strings.Cut(l, "=")
		key = strings.TrimSpace(key)
		restricts := restricting.MatchString(key) && !slices.Contains(turnedOff, strings.ToLower(strings.TrimSpace(value)))
		if !slices.Contains(keys, key) && (ownDropIn(at, unit) || restricts || breaking.MatchString(key)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// without returns the command that removes a drop-in from a unit. A drop-in that also applies to other units is not
// deleted. A symlink to /dev/null with the same name in the unit's own folder overrides it.
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
