// Package masked defines a type for secret values. Such a value is printed, logged and encoded as "(hidden)".
package masked
