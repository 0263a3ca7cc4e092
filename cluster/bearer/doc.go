// Package bearer decodes JSON web tokens that ServiceAccounts and users present.
// It does not verify them.
package bearer
