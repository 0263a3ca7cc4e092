package ui

import (
	"strings"
)

// environment reads an environment variable, as os.Getenv does.
type environment func(name string) string

// colours tells whether the screen has colours: what the flag says, else
// NO_COLOR, else CLICOLOR_FORCE, else CLICOLOR=0, else yes: it is a terminal.
func colours(flag string, env environment) bool {
	switch {
	case flag == "always":
		return true
	case flag == "never":
		return false
	case env("NO_COLOR") != "":
		return false
	case env("CLICOLOR_FORCE") != "" && env("CLICOLOR_FORCE") != "0":
		return true
	}
	return env("CLICOLOR") != "0"
}

// locale is the locale of characters: the first of the three that is set.
func (env environment) locale() string {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := env(name); v != "" {
			return v
		}
	}
	return ""
}

// plainLocale tells whether nothing but ASCII can be shown.
func (env environment) plainLocale() bool {
	l := env.locale()
	return l == "" || l == "C" || l == "POSIX"
}

// wideLocale tells whether lines, dots and arrows are two columns wide.
func (env environment) wideLocale() bool {
	for _, lang := range []string{"ja", "ko", "zh"} {
		if strings.HasPrefix(env.locale(), lang) {
			return true
		}
	}
	return false
}
