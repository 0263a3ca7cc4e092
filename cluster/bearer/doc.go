// Package bearer decodes the JSON web tokens of ServiceAccounts and users. It does not verify them.
package bearer
