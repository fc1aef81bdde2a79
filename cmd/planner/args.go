package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// permute moves flags in front of positional arguments, and behind the name of
// the command, so that they may stand anywhere on the command line: the parser
// of the library stops at the first positional argument. Everything behind "--"
// stays positional.
func permute(app *cli.App, args []string) []string {
	if len(args) < 2 {
		return args
	}
	if args[1] == "help" {
		// "help fit" is "fit --help".
		args = append(append([]string{args[0]}, args[2:]...), "--help")
	}
	var command string
	var flags, positional []string
	takesValue := valueFlags(app.Flags)
	for i := 1; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			positional = append(positional, args[i+1:]...)
			i = len(args)
		case strings.HasPrefix(arg, "-") && arg != "-":
			flags = append(flags, arg)
			name := strings.TrimLeft(arg, "-")
			if !strings.Contains(name, "=") && takesValue(name) && i+1 < len(args) {
				i++
				flags = append(flags, args[i])
			}
		case command == "":
			command = arg
			if c := app.Command(arg); c != nil {
				takesValue = valueFlags(c.Flags)
			}
		default:
			positional = append(positional, arg)
		}
	}
	if command == "" {
		return args
	}
	out := append([]string{args[0], command}, flags...)
	if c := app.Command(command); c != nil && len(c.Subcommands) > 0 {
		return append(append(out[:2:2], positional...), flags...)
	}
	if len(positional) > 0 {
		out = append(append(out, "--"), positional...)
	}
	return out
}

// valueFlags tells which of the flags take a value in the next argument.
func valueFlags(flags []cli.Flag) func(string) bool {
	return func(name string) bool {
		for _, f := range flags {
			_, isBool := f.(*cli.BoolFlag)
			for _, n := range f.Names() {
				if n == name {
					return !isBool
				}
			}
		}
		return false
	}
}
