package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"planner/internal/list"
	"planner/internal/printable"
	"planner/internal/spelling"
	"planner/sweep"
)

// program holds the outputs of every command.
type program struct {
	// stdout takes documents and JSON, plain other standard output, and stderr messages; the last two without
	// terminal control sequences.
	stdout, plain, stderr io.Writer
	// terminal is the unfiltered standard error, for a display that redraws itself.
	terminal io.Writer
	signals  *interrupts
}

func newApp(stdout, stderr io.Writer, signals *interrupts) *cli.App {
	p := &program{stdout, printable.Writer(stdout), printable.Writer(stderr), stderr, signals}
	return &cli.App{
		Name:    "planner",
		Usage:   "how many GPUs, which server flags and what cost, for this LLM traffic and this SLO",
		Version: version,
		Description: "Start with 'planner estimate' (no GPU needed) or 'planner init > planner.toml'.\n" +
			"Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 no feasible plan, 4 undecided, 130 interrupted.",
		Writer:                    &helpWriter{to: stdout},
		ErrWriter:                 p.stderr,
		DisableSliceFlagSeparator: true,
		Suggest:                   true,
		HideHelpCommand:           true,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              asUsage,
		Action:                    p.noCommand,
		Commands: commands(append(p.measuring(),
			p.fitCommand(),
			p.calibrateCommand(),
			p.resumeCommand(),
			p.reportCommand(),
			p.manifestsCommand(),
			p.rulesCommand(),
			p.schemaCommand(),
			p.serveSimCommand(),
			p.traceCommand(),
			p.importCommand(),
			p.doctorCommand(),
			p.cleanCommand(),
			p.installCommand(),
			p.catalogCommand(),
			p.initCommand(),
			p.completionCommand(),
			p.completeCommand(),
		)...),
	}
}

// commands adds the flags and behaviour that all commands share.
func commands(all ...*cli.Command) []*cli.Command {
	for _, c := range all {
		c.Flags = append(c.Flags,
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress and no warnings on standard error"},
			&cli.BoolFlag{Name: "verbose", Usage: "say more on standard error: each trial and why it was chosen"},
		)
		for _, f := range c.Flags {
			if b, ok := f.(*cli.BoolFlag); ok {
				b.DisableDefaultText = true // a flag is obviously not given by default
			}
		}
		c.OnUsageError = asUsage
		c.HideHelpCommand = true
	}
	return all
}

func (p *program) noCommand(c *cli.Context) error {
	if name := c.Args().First(); name != "" {
		commands := list.Map(c.App.VisibleCommands(), func(c *cli.Command) string { return c.Name })
		return usagef("unknown command %q%s; 'planner --help' lists them", name, meant(name, "", commands))
	}
	return cli.ShowAppHelp(c)
}

func asUsage(c *cli.Context, err error, _ bool) error {
	if name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); unknown {
		flags := list.Map(c.Command.VisibleFlags(), func(f cli.Flag) string { return f.Names()[0] })
		return usagef("unknown flag --%s%s; '%s --help' lists them", strings.TrimLeft(name, "-"), meant(name, "--", flags), c.Command.HelpName)
	}
	return usageError{err}
}

// meant suggests the nearest of some names, prefixed with sign, if one is near.
func meant(word, sign string, names []string) string {
	if near := spelling.Nearest(word, names); spelling.Slip(word, near) {
		return fmt.Sprintf(" (did you mean %s%s?)", sign, near)
	}
	return ""
}

func onePositional(c *cli.Context, what string) (string, error) {
	switch c.Args().Len() {
	case 1:
		return c.Args().First(), nil
	case 0:
		return "", usagef("%s: missing %s; see 'planner %s --help'", c.Command.Name, what, c.Command.Name)
	}
	return "", usagef("%s: one %s expected, %d given: %v", c.Command.Name, what, c.Args().Len(), c.Args().Slice())
}

func openedFolder(c *cli.Context) (sweep.Folder, sweep.About, error) {
	path, err := onePositional(c, "run folder")
	if err != nil {
		return sweep.Folder{}, sweep.About{}, err
	}
	return openFolder(path)
}

func openFolder(path string) (sweep.Folder, sweep.About, error) {
	folder, about, err := sweep.OpenFolder(path)
	if err != nil {
		err = usageError{err}
	}
	return folder, about, err
}
