// Package check holds checks that guides share: a cluster answers, its clock
// agrees, rights are there, a certificate is valid. It mentions no product.
package check
