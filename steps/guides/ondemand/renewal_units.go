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

// renewalChanged says what changes the units of the renewal without a change of their files.
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

// ownDropIn reports whether a drop-in is for one unit alone.
func ownDropIn(at, unit string) bool { return path.Base(path.Dir(at)) == unit+".d" }

// breaking are the settings that can keep the renewal from running when it should, or from doing its work. Drop-ins for
// several units set many others: LXD and Incus ship service.d/zzz-lxc-service.conf, Fedora
// service.d/10-timeout-abort.conf.
var breaking = regexp.MustCompile(`^((Exec|Condition|Assert|Environment)\w*|User|Group|Type|Unit|Persistent|` +
	`PassEnvironment|UnsetEnvironment|WorkingDirectory|RootDirectory|` +
	`On((Active|Boot|Startup|UnitActive|UnitInactive)Sec|Calendar|ClockChange|TimezoneChange))$`)

// restricting are settings that can break the renewal, unless their value turns them off.
var restricting = regexp.MustCompile(
	`^(ProtectSystem|ProtectHome|ReadOnlyPaths|InaccessiblePaths|PrivateNetwork|IPAddressDeny|RestrictAddressFamilies)$`)

// turnedOff are the values by which a setting restricts nothing.
var turnedOff = []string{"", "no", "false", "off", "0"}

// changedKeys are the keys that a drop-in sets, without their values: the password of a proxy can be among them. Of a
// drop-in for several units, only those count that can break the renewal.
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

// without is the command that keeps a drop-in from a unit. One that other units have, too, is hidden from this one by a
// link of the same name in the unit's own folder.
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
