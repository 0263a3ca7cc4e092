// Package masked contains secret values that are printed, logged and encoded as "(hidden)".
package masked
