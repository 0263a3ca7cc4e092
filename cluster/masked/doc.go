// Package masked holds secret values, which are printed, logged and encoded as "(hidden)".
package masked
