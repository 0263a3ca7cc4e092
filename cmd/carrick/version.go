package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// release is set at build time: -ldflags "-X main.release=v1.2.3".
var release = "dev"

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "The version of carrick",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("version takes no argument")
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.out, "carrick %s %s %s/%s\n", release, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
